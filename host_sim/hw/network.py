"""`network` of an ESP32-S3: one station and one access point among the world's access points.

As on the chip: `connect` returns at once and the driver goes on trying, for ever with
`reconnects=-1`; while it tries, `status()` shows the last reason; a second `connect` meanwhile is
an 'internal state' error; a beacon that stays away is noticed after seconds; a scan blocks.
Data does not pass through here: the host's sockets are always online.
"""

import chip
import world

STAT_IDLE = 1000
STAT_CONNECTING = 1001
STAT_GOT_IP = 1010
STAT_BEACON_TIMEOUT = 200
STAT_NO_AP_FOUND = 201
STAT_WRONG_PASSWORD = 202

_FOUND_US = 600_000  # until an access point that is there has answered
_NOT_FOUND_US = 2_400_000  # all channels heard
_REFUSED_US = 1_500_000
_ADDRESS_US = 700_000  # DHCP
_BEACON_US = 6_000_000
_SCAN_US = 2_500_000

# what the driver does
_OFF = 0
_SEEKING = 1
_ADDRESSING = 2
_ONLINE = 3
_DEAF = 4  # the beacon stays away, nobody has noticed
_GIVEN_UP = 5


class WLAN:
    """One object for each interface, whoever asks for it."""

    IF_STA = 0
    IF_AP = 1
    PM_NONE = 0
    PM_PERFORMANCE = 1
    PM_POWERSAVE = 2
    SEC_OPEN = 0
    SEC_WPA2 = 3
    SEC_WPA2_WPA3 = 7

    _made = {}

    def __new__(cls, interface=0):
        if interface not in cls._made:
            made = object.__new__(cls)
            made._begin(interface)
            cls._made[interface] = made
        return cls._made[interface]

    def _begin(self, interface):
        self._station = interface == WLAN.IF_STA
        self._active = False
        self._state = _OFF
        self._due = 0
        self._reason = 0
        self._wanted = None
        self._point = None
        self._tries = 0
        self._config = {"pm": WLAN.PM_PERFORMANCE, "reconnects": -1}
        if not self._station:
            self._config = {"ssid": "ESP", "security": WLAN.SEC_OPEN, "key": "", "max_clients": 4}
        self._config["channel"] = 1

    def active(self, on=None):
        if on is None:
            return self._active
        if bool(on) != self._active:
            self._active = bool(on)
            self._state = _OFF
            (chip.attach if on else chip.detach)(self)
        return None

    def connect(self, ssid=None, key=None):
        if not self._active:
            raise OSError("Wifi Not Started")
        if self._state in (_SEEKING, _ADDRESSING):
            raise OSError("Wifi Internal State Error")
        self._wanted = (ssid, key)
        self._tries = self._reason = 0
        self._seek(chip.now_us)

    def disconnect(self):
        if not self._active:
            raise OSError("Wifi Not Started")
        self._wanted = self._point = None
        self._state = _OFF

    def isconnected(self):
        return self._active and self._state in (_ONLINE, _DEAF)

    def status(self, what=None):
        if what == "rssi":
            if not self.isconnected():
                raise OSError("Wifi Not Connected")
            return self._point["rssi"]
        if what == "stations":
            return []
        if self.isconnected():
            return STAT_GOT_IP
        if self._state in (_SEEKING, _ADDRESSING):
            return self._reason or STAT_CONNECTING
        return self._reason or STAT_IDLE

    def scan(self):
        """What can be heard: (ssid, bssid, channel, rssi, security, hidden)."""
        if not self._station or not self._active:
            raise OSError("STA must be active")
        chip.sleep_us(_SCAN_US)
        return [
            (
                b"" if point.get("hidden") else point["ssid"].encode(),
                b"\x02\x00\x00\x00\x00" + bytes((number,)),
                1 + number % 11,
                point["rssi"],
                WLAN.SEC_WPA2 if point["password"] else WLAN.SEC_OPEN,
                bool(point.get("hidden")),
            )
            for number, point in enumerate(world.access_points)
        ]

    def config(self, *names, **values):
        if names:
            if names[0] == "mac":
                return b"\x02\x70\x61\x72\x6c\x79"
            if names[0] not in self._config:
                raise ValueError("unknown config param")
            return self._config[names[0]]
        for name, value in values.items():
            if name not in self._config:
                raise ValueError("unknown config param")
            self._config[name] = value
        return None

    def ipconfig(self, name):
        """Only `addr4`: (address, mask)."""
        if name != "addr4":
            raise ValueError("unknown config param")
        if not self._station:
            return ("192.168.4.1", "255.255.255.0")
        return ("192.168.1.23" if self.isconnected() else "0.0.0.0", "255.255.255.0")

    def advance(self, now_us):
        """The driver's own time."""
        if self._state in (_ONLINE, _DEAF) and self._point in world.access_points:
            self._state = _ONLINE
        elif self._state == _ONLINE:
            self._state = _DEAF
            self._due = now_us + _BEACON_US
        elif self._state == _ADDRESSING and self._point not in world.access_points:
            self._failed(STAT_BEACON_TIMEOUT, now_us)
        elif self._state in (_OFF, _GIVEN_UP) or now_us < self._due:
            return
        elif self._state == _DEAF:
            self._failed(STAT_BEACON_TIMEOUT, now_us)
        elif self._state == _ADDRESSING:
            self._state = _ONLINE
            self._reason = 0
        elif self._point not in world.access_points:
            self._failed(STAT_NO_AP_FOUND, now_us)
        elif self._point["password"] != (self._wanted[1] or ""):
            self._failed(STAT_WRONG_PASSWORD, now_us)
        else:
            self._state = _ADDRESSING
            self._due = now_us + _ADDRESS_US

    def _seek(self, now_us):
        self._state = _SEEKING
        ssid, key = self._wanted
        heard = [point for point in world.access_points if point["ssid"] == ssid]
        self._point = max(heard, key=lambda point: point["rssi"]) if heard else None
        if not self._point:
            self._due = now_us + _NOT_FOUND_US
        elif self._point["password"] != (key or ""):
            self._due = now_us + _REFUSED_US
        else:
            self._due = now_us + _FOUND_US

    def _failed(self, reason, now_us):
        self._reason = reason
        self._tries += 1
        if self._config["reconnects"] < 0 or self._tries <= self._config["reconnects"]:
            self._seek(now_us)
        else:
            self._state = _GIVEN_UP
