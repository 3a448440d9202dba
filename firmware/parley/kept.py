"""What must survive a restart so that a server knows the device again: `Kept(path)`.

The UUID is made once; the last good address of a pairing server lets a start without it work.
"""

import json
import os

from parley import log


class Kept:
    """What is kept in the file at `path`; without one, or with one that is no use, a new begin."""

    def __init__(self, path):
        self._path = path
        #: UUID v4 of this device
        self.uuid = None
        #: the last answer with an address: url, token and version; or None
        self.answer = None
        self._load()
        if self.uuid is None:
            self.uuid = _uuid4(os.urandom(16))
            self._save()

    def keep(self, answer):
        """Keep the address of `answer` for later starts, if it has one."""
        if answer.url is not None:
            self.answer = answer
            self._save()

    def _load(self):
        try:
            with open(self._path, "rb") as file:
                value = json.loads(file.read().decode())
            uuid = value["uuid"]
            if not isinstance(uuid, str) or len(uuid) != 36:
                raise ValueError
            self.uuid = uuid
            if value.get("url"):
                from parley import pairing  # large, and no use without such an address

                self.answer = pairing.parse({"websocket": value})
        except OSError:
            pass  # none yet
        except (ValueError, KeyError, TypeError, AttributeError, RuntimeError):
            log.warn("pairing: the file", self._path, "is not usable")

    def _save(self):
        """Write a new file and rename it: the old one or the new one is there, never a mixture."""
        value = {"uuid": self.uuid}
        if self.answer:
            value["url"] = self.answer.url
            value["token"] = self.answer.token
            value["version"] = self.answer.version
        temporary = self._path + ".new"
        try:
            with open(temporary, "w") as file:
                file.write(json.dumps(value))
            os.rename(temporary, self._path)
        except OSError as error:
            log.error("pairing:", self._path, "can't be written:", error)


def _uuid4(random):
    """Return 16 random bytes as a UUID of version 4 (RFC 9562, section 5.4)."""
    octets = bytearray(random)
    octets[6] = octets[6] & 0x0F | 0x40
    octets[8] = octets[8] & 0x3F | 0x80
    digits = octets.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
