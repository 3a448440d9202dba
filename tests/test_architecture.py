"""The floors of the firmware: a module imports only from lower ones."""

import ast

from interpreters import FIRMWARE

# what MicroPython brings on the chip
PLATFORM = {"array", "asyncio", "binascii", "collections", "cryptolib", "deflate", "errno", "esp"}
PLATFORM |= {"esp32", "framebuf", "gc", "hashlib", "io", "json", "machine", "math"}
PLATFORM |= {"micropython", "neopixel", "network", "ntptime", "os", "random", "requests", "select"}
PLATFORM |= {"socket", "struct", "sys", "time", "tls", "uctypes", "vfs"}
PURE = {"collections", "json", "micropython", "struct", "jsontext"}
# floors within lib/ and parley/; what is not named stands on 0 in lib/ and on 1 in parley/
LIB = {"waiting": 1, "i2saudio": 2, "pushbutton": 1, "transport": 2, "wsreceiver": 3}
LIB |= {"wsclient": 4, "trust": 1, "post": 4, "sntp": 2, "halfduplex": 3, "ssd1306": 1}
PARLEY = {
    "errors": 0,
    "states": 0,
    "log": 0,
    "trace": 0,
    "websocket_task": 3,
    "samples": 3,
    "packets": 3,
    "speech": 3,
    "player": 3,
    "limit": 3,
    "conversation": 4,
    "session": 5,
    "tools": 4,
    "pairing": 2,
    "kept": 3,
    "clock": 3,
    "admission": 4,
    "device": 4,
    "wifi": 4,
    "portal": 4,
    "audio": 4,
    "online": 5,
    "ui": 4,
    "app": 6,
    "start": 7,
    "debug": 8,
}
TOP = 9  # boot.py, main.py


def modules():
    """Return {dotted name: path}; lib/ is in the search path, so its modules have short names."""
    found = {}
    for path in FIRMWARE.rglob("*.py"):
        name = path.relative_to(FIRMWARE).with_suffix("")
        parts = name.parts[1:] if name.parts[0] == "lib" else name.parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if parts:
            found[".".join(parts)] = path
    return found


def floor(name):
    """Return (0 for lib, 1 for parley, 2 for the start; the floor within)."""
    parts = name.split(".")
    if parts[0] == "parley":
        return (1, PARLEY.get(parts[1], 1) if len(parts) > 1 else 0)
    if parts[0] in ("main", "boot"):
        return (2, TOP)
    return (0, LIB.get(parts[0], 0))


def imports(path, known):
    """Yield the modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.name}: relative import"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in known else node.module


def test_no_arrow_points_up():
    known = modules()
    assert len(known) > 20
    for name, path in known.items():
        for imported in imports(path, known):
            if imported.split(".")[0] in PLATFORM:
                continue
            assert imported in known, f"{name} imports {imported}, which nothing provides"
            depth = 2 if name.startswith("parley.") else 1
            family = imported.split(".")[:depth] == name.split(".")[:depth]  # of one package
            lower = floor(imported) < floor(name) or (family and imported != name)
            assert lower, f"{name} {floor(name)} imports {imported} {floor(imported)}"


def test_a_dialect_is_pure():
    """Dialects know nothing but text: no clock, no socket, no file, no state of the product."""
    known = modules()
    for name, path in known.items():
        if name.startswith("parley.protocol."):
            for imported in imports(path, known):
                pure = imported in PURE or imported.startswith("parley.protocol")
                pure |= imported == "parley"  # the version
                assert pure, f"{name} imports {imported}"


def test_the_firmware_knows_no_simulator():
    for name, path in modules().items():
        for word in ("host_sim", "simulat", "unix port", "pytest", "hasattr"):
            assert word not in path.read_text(), f"{name} speaks of {word}"


def test_nothing_goes_round():
    """No module imports itself by way of others."""
    known = modules()
    arrows = {n: {i for i in imports(p, known) if i in known and i != n} for n, p in known.items()}

    def visit(name, way):
        assert name not in way, " -> ".join((*way, name))
        for following in arrows[name]:
            visit(following, (*way, name))

    for name in known:
        visit(name, ())
