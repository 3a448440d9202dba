"""Wi-Fi on the simulated driver: what a person sees of it, on each interpreter. R12 and R13."""

import contextlib
import json
import socket
import ssl
import struct
import threading

import pytest
import trustme
from interpreters import RUNTIMES
from onchip import run_on_chip
from scripted import AGAIN, QUIT, WAKE, converse, normal, on
from scripted import RUNTIMES as DEVICES

both = pytest.mark.parametrize("runtime", RUNTIMES)

SCENE = """
import network
from parley.settings import Settings
from parley.wifi import Wifi

calls = []
class Station:
    # the driver, with a list of what was asked of it
    def __init__(self, real):
        self.real = real
        self.fails = []
        self.says = []
    def __getattr__(self, name):
        return getattr(self.real, name)
    def connect(self, ssid, key):
        calls.append("connect " + ssid)
        if self.fails:
            raise self.fails.pop()
        self.real.connect(ssid, key)
    def disconnect(self):
        calls.append("disconnect")
        self.real.disconnect()
    def scan(self):
        calls.append("scan")
        return self.real.scan()
    def status(self, *what):
        return self.says.pop(0) if self.says else self.real.status(*what)

station = Station(network.WLAN(network.WLAN.IF_STA))
notices = []
onlines = []
def changed():
    notices.append([wifi.online, wifi.notice])
wifi = None

def known(*pairs):
    networks = [{"ssid": s, "password": p} for s, p in pairs]
    settings = Settings({"networks": networks})
    assert not settings.problems, settings.problems
    return settings

def point(ssid, password, rssi=-50, **more):
    world.access_points.append(dict(more, ssid=ssid, password=password, rssi=rssi))
    return world.access_points[-1]

def begin(settings):
    global wifi
    wifi = Wifi(station, settings, changed, lambda: onlines.append(1))
    asyncio.create_task(wifi.run())

async def until(online, limit_ms=120000):
    end = time.ticks_add(time.ticks_ms(), limit_ms)
    while wifi.online != online:
        assert time.ticks_diff(end, time.ticks_ms()) > 0, (notices, calls)
        await asyncio.sleep_ms(100)

async def passed(limit_ms):
    # by the chip's clock, which is late when the host is busy
    end = time.ticks_add(time.ticks_ms(), limit_ms)
    while time.ticks_diff(end, time.ticks_ms()) > 0:
        await asyncio.sleep_ms(100)

def ssid():
    return station.real._wanted[0]
"""


def scene(runtime, script, **options):
    return run_on_chip(runtime, SCENE + script, **options)


@both
def test_r13a_a_driver_that_raises_while_it_connects(runtime):
    """R13 (a): no traceback; left first, then joined, and online."""
    (seen,) = scene(
        runtime,
        """
async def main():
    point("home", "correct horse")
    station.fails = [OSError("Wifi Internal State Error")]
    begin(known(("home", "correct horse")))
    await until(True)
    show([calls, onlines])
asyncio.run(main())
""",
    )
    calls, onlines = seen
    assert calls == ["disconnect", "connect home"] * 2
    assert onlines == [1]


@both
def test_r13b_a_status_that_wavers_is_no_reason_to_connect_again(runtime):
    """R13 (b): connecting, idle, no such network, got-IP: exactly one connect call."""
    ((calls, notices),) = scene(
        runtime,
        """
async def main():
    point("home", "correct horse")
    station.says = [1001, 1000, 201, 202, 1001]
    begin(known(("home", "correct horse")))
    await until(True)
    show([calls, notices])
asyncio.run(main())
""",
    )
    assert calls.count("connect home") == 1
    assert notices == [[False, "joining home"], [True, ""]]


@both
def test_r13c_a_wrong_password_is_named_and_its_correction_needs_no_restart(runtime):
    ((before, taken),) = scene(
        runtime,
        """
async def main():
    point("home", "correct horse")
    settings = known(("home", "wrong battery"))
    begin(settings)
    while len(notices) < 2:
        await asyncio.sleep_ms(100)
    before = list(notices)
    settings.set("networks", [{"ssid": "home", "password": "correct horse"}])
    began = time.ticks_ms()
    wifi.hurry()
    await until(True)
    show([before, time.ticks_diff(time.ticks_ms(), began)])
asyncio.run(main())
""",
    )
    assert before == [[False, "joining home"], [False, "home: password refused"]]
    assert taken < 4000


@both
def test_a_correction_does_not_wait_for_the_attempt_that_runs(runtime):
    (taken,) = scene(
        runtime,
        """
async def main():
    point("home", "correct horse")
    settings = known(("home", "wrong battery"))
    begin(settings)
    await passed(3000)
    settings.set("networks", [{"ssid": "home", "password": "correct horse"}])
    began = time.ticks_ms()
    wifi.hurry()
    await until(True)
    show(time.ticks_diff(time.ticks_ms(), began))
asyncio.run(main())
""",
    )
    assert taken < 4000


@both
def test_r13d_an_access_point_that_was_gone_for_a_minute(runtime):
    """R13 (d): said within seconds, and back by itself; the waits between tries grow."""
    ((notices, tries, taken),) = scene(
        runtime,
        """
async def main():
    home = point("home", "correct horse")
    begin(known(("home", "correct horse")))
    await until(True)
    world.access_points.remove(home)
    await until(False, 8000)
    await passed(60000)
    world.access_points.append(home)
    began = time.ticks_ms()
    await until(True)
    show([notices, calls.count("connect home"), time.ticks_diff(time.ticks_ms(), began)])
asyncio.run(main())
""",
    )
    assert [False, "home: connection lost"] in notices
    assert [False, "home: not found"] in notices
    assert notices[-1] == [True, ""]
    assert 2 <= tries <= 6
    assert taken < 70000


@both
def test_the_strongest_known_network_is_taken_and_the_next_when_that_fails(runtime):
    ((first, second, tried),) = scene(
        runtime,
        """
async def main():
    point("attic", "correct horse", -80)
    point("kitchen", "battery staple", -40)
    point("neighbour", "not our business", -30)
    begin(known(("attic", "correct horse"), ("kitchen", "battery staple")))
    await until(True)
    first = ssid()
    world.access_points[:] = world.access_points[:1]
    await until(False)
    await until(True)
    second = ssid()
    show([first, second, [c for c in calls if "neighbour" in c]])
asyncio.run(main())
""",
    )
    assert (first, second, tried) == ("kitchen", "attic", [])


@both
def test_a_hidden_network_is_tried_after_those_that_were_heard(runtime):
    (found,) = scene(
        runtime,
        """
async def main():
    point("cellar", "correct horse", -40, hidden=True)
    begin(known(("attic", "battery staple"), ("cellar", "correct horse")))
    await until(True)
    show([ssid()])
asyncio.run(main())
""",
    )
    assert found == ["cellar"]


@both
def test_an_open_network_and_none_at_all(runtime):
    (seen,) = scene(
        runtime,
        """
async def main():
    point("cafe", "")
    begin(known(("cafe", "")))
    await until(True)
    show([ssid()])
asyncio.run(main())
""",
    )
    assert seen == ["cafe"]


@both
def test_a_conversation_is_never_disturbed(runtime):
    """Power save is off, and the network's loss leads to no scan and no joining before its end."""
    ((before, during, asked, after),) = scene(
        runtime,
        """
async def main():
    home = point("home", "correct horse")
    begin(known(("home", "correct horse"), ("work", "battery staple")))
    await until(True)
    before = station.config("pm")
    wifi.talking(True)
    during = station.config("pm")
    del calls[:]
    world.access_points[:] = []
    await until(False)
    await passed(40000)
    asked = list(calls)
    wifi.talking(False)
    after = station.config("pm")
    world.access_points.append(home)
    await until(True)
    show([before, during, asked, after])
asyncio.run(main())
""",
    )
    none, performance = 0, 1
    assert (before, during, after) == (performance, none, performance)
    assert asked == []


@both
def test_after_a_short_loss_the_driver_comes_back_by_itself(runtime):
    (asked,) = scene(
        runtime,
        """
async def main():
    home = point("home", "correct horse")
    begin(known(("home", "correct horse")))
    await until(True)
    del calls[:]
    world.access_points[:] = []
    await until(False)
    world.access_points.append(home)
    await until(True, 8000)
    show(calls)
asyncio.run(main())
""",
    )
    assert asked == []


@both
def test_while_it_is_paused_it_stays_away_from_the_driver(runtime):
    ((asked, online),) = scene(
        runtime,
        """
async def main():
    point("home", "correct horse")
    begin(known(("home", "correct horse")))
    await until(True)
    wifi.pause()
    await asyncio.sleep_ms(500)
    del calls[:]
    await passed(30000)
    asked = list(calls)
    wifi.resume()
    await until(True)
    show([asked, wifi.online])
asyncio.run(main())
""",
    )
    assert (asked, online) == ([], True)


CLOCK = """
import sys
from parley.clock import Clock
from parley import clock
from parley.settings import Settings

now = [946684800]  # the chip has begun at 1 January 2000
real = time.gmtime
time.gmtime = lambda *seconds: real(*seconds) if seconds else real(now[0])

class RTC:
    def datetime(self, value):
        year, month, day, weekday, hour, minute, second, _ = value
        now[0] = 946684800 + (year - 2000) * 31557600
        show([year, month, day, hour, minute])

def descriptors():
    return len(os.listdir("/proc/self/fd"))

clock_ = Clock(Settings({"time_server": sys.argv[1]}), RTC())
"""


class TimeServer:
    """Answers SNTP on a port of this machine; `answer(request)` makes the packet, or None."""

    def __init__(self, answer):
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.questions = 0
        self._answer = answer
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                request, peer = self._socket.recvfrom(512)
                if not request:
                    return
                self.questions += 1
                answer = self._answer(request, self.questions)
                if answer:
                    self._socket.sendto(answer, peer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def packet(request, seconds=1788262496, stratum=2, first=0x24, originate=None):
    """An answer of RFC 4330; the default time is 2026-09-01 11:34:56 UTC."""
    originate = request[40:48] if originate is None else originate
    stamp = struct.pack("!II", (seconds + 2208988800) % (1 << 32), 1 << 31)
    return struct.pack("!BBbb12x8x8s8s8s", first, stratum, 4, -20, originate, stamp, stamp)


ATTEMPT = """
async def main():
    show(await clock_.before())
    show(clock.is_set())
asyncio.run(main())
"""


@both
def test_r12a_the_time_is_asked_for_and_set(runtime):
    with TimeServer(lambda request, _: packet(request)) as server:
        told, problem, is_set = run_on_chip(runtime, CLOCK + ATTEMPT, server.address)
    assert told == [2026, 9, 1, 11, 34]
    assert problem is None and is_set is True


BAD = {
    "the year 1970": lambda request, _: packet(request, seconds=100),
    "no time itself": lambda request, _: packet(request, first=0xE4),
    "kiss of death": lambda request, _: packet(request, stratum=0),
    "not a server": lambda request, _: packet(request, first=0x23),
    "cut short": lambda request, _: packet(request)[:47],
    "guessed by somebody else": lambda request, _: packet(request, originate=b"12345678"),
    "nothing": lambda request, _: None,
}


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD.keys())
def test_r12bd_a_time_that_can_not_be_used_leaves_the_clock_as_it_was(answer):
    with TimeServer(answer) as server:
        ((code, _), is_set) = run_on_chip(RUNTIMES[-1].values[0], CLOCK + ATTEMPT, server.address)
    assert code == "clock" and is_set is False


@both
def test_r12b_each_attempt_asks_again_and_no_socket_is_left(runtime):
    """R12 (b): 50 attempts, each given up by the person after a while."""
    script = """
async def give_up():
    await asyncio.sleep_ms(300)
    clock_.abort()

async def main():
    await clock_.before()
    first = descriptors()
    codes = []
    for _ in range(50):
        asyncio.create_task(give_up())
        began = time.ticks_ms()
        codes.append((await clock_.before())[0])
        assert time.ticks_diff(time.ticks_ms(), began) < 1000
    show([codes, first, descriptors()])
asyncio.run(main())
"""
    with TimeServer(lambda request, _: None) as server:
        ((codes, first, last),) = run_on_chip(runtime, CLOCK + script, server.address)
        assert server.questions >= 50
    assert codes == ["clock"] * 50
    assert first == last


@both
def test_r12c_a_server_that_answers_later_is_believed_then(runtime):
    script = """
async def main():
    show(await clock_.before())
    show(await clock_.before())
asyncio.run(main())
"""
    with TimeServer(lambda request, n: packet(request) if n > 3 else None) as server:
        first, told, second = run_on_chip(runtime, CLOCK + script, server.address)
    assert first[0] == "clock"
    assert told[0] == 2026 and second is None


def test_the_era_after_2036_is_understood():
    with TimeServer(lambda request, _: packet(request, seconds=2114424000)) as server:
        told, _, _ = run_on_chip(RUNTIMES[-1].values[0], CLOCK + ATTEMPT, server.address)
    assert told[:3] == [2037, 1, 1]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """A server's TLS context, and the file of the CA."""
    ca = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost").configure_cert(server)
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    ca.cert_pem.write_to_path(str(path))
    return server, str(path)


def secure(authority, server, *clouds, runtime, script, levels=()):
    return converse(
        *clouds,
        script=script,
        runtime=runtime,
        ssl=authority[0],
        arguments=["--ca", authority[1]],
        settings={"time_server": server.address, "connect_timeout_ms": 30000},
        stand_in={"clock": 946684800, "levels": list(levels)},
    )


@pytest.mark.parametrize("runtime", DEVICES)
def test_r12a_the_first_secure_connection_waits_for_the_time(runtime, authority):
    with TimeServer(lambda request, _: packet(request)) as server:
        run = secure(authority, server, normal, runtime=runtime, script=(WAKE, QUIT))
    run.check_recovered()
    assert server.questions == 1


@pytest.mark.parametrize("runtime", DEVICES)
def test_r12bc_the_screen_names_the_clock_and_the_next_attempt_asks_again(runtime, authority):
    script = [WAKE, AGAIN, {**AGAIN, "after_ms": 900}, QUIT]
    with TimeServer(lambda request, n: packet(request) if n > 6 else None) as server:
        run = secure(authority, server, normal, runtime=runtime, script=script)
    run.check_recovered()
    problems = run.events("error", code="clock")
    assert len(problems) == 2
    assert all("clock not set" in problem["message"] for problem in problems)
    assert any("clock not set" in line for line in run.shown())
    assert run.events("closed")[0]["by"] == "device"


@pytest.mark.parametrize("runtime", DEVICES)
def test_r12_the_person_can_give_up_while_the_time_server_is_silent(runtime, authority):
    presses = [[100, 0, 1], [200, 0, 0], [1200, 0, 1], [2000, 0, 0], [3000, 0, 1]]
    with TimeServer(lambda request, _: None) as server:
        run = secure(
            authority,
            server,
            runtime=runtime,
            script=[on("closed", "quit", 200)],
            levels=presses,
        )
    run.check_clean()
    press = run.events("button", gesture="long")[1]["t_ms"]
    closed = run.only("closed", by="device", reason="user_exit")
    assert 0 <= closed["t_ms"] - press < 500


HOME = json.dumps([{"ssid": "home", "password": "correct horse"}])


@pytest.mark.parametrize("runtime", DEVICES)
def test_a_device_with_a_network_goes_online_and_talks(runtime):
    run = converse(
        normal,
        script=[on("start", "boot.long", 4000), QUIT],
        runtime=runtime,
        settings={"networks": HOME},
        stand_in={"air": [{"ssid": "home", "password": "correct horse", "rssi": -60}]},
    )
    run.check_recovered()


@pytest.mark.parametrize("runtime", DEVICES)
def test_without_its_network_the_screen_says_so_and_buttons_work(runtime):
    run = converse(
        script=[on("start", "boot.long"), on("ERROR", "boot.long"), on("closed", "quit", 500)],
        runtime=runtime,
        settings={"networks": HOME},
        stand_in={"air": []},
    )
    run.check_clean()
    assert "no Wi-Fi: joining home" in run.shown()
    assert "joining home" in run.shown()
    assert len(run.events("error", code="no_network")) == 2
