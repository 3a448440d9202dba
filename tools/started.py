"""Whether the firmware has started: asked at the prompt, after which the board starts it again."""

import time

from host_sim.usage import UsageError
from tools import port as ports
from tools.repl import Repl

_TRIES_S = (1, 3, 8)  # until the look: one that comes while the modules are imported stops that

_STATE = """
import json, sys
d = {'version': None, 'app': False}
d['micropython'] = '.'.join(str(n) for n in sys.implementation[1][:3])
try:
    import parley
    d['version'] = parley.VERSION
    from parley import start
    d['app'] = start.app is not None
    d['reason'] = start.reason
except Exception as e:
    d['error'] = repr(e)
try:
    with open('/crash.log') as f:
        d['log'] = f.read()[-400:]
except OSError:
    pass
print(json.dumps(d))
"""


def check(port: ports.Port) -> str:
    """Return the line that says what runs; UsageError says why nothing does. Restarts it."""
    state = {}
    for pause in _TRIES_S:
        time.sleep(pause)
        with Repl(ports.wait(port), fresh=False) as repl:
            state = repl.value(_STATE)
            repl.reset()
        if state["app"]:
            return f"parley {state['version']} runs on MicroPython {state['micropython']}"
        if "error" in state or state["reason"]:
            break
    if "incompatible" in state.get("error", ""):
        raise UsageError(
            f"mpy version: MicroPython {state['micropython']} can't read the firmware's files; "
            "run `make flash` without FIRMWARE"
        )
    if "error" in state:
        raise UsageError(f"the firmware can't be imported on the board: {state['error']}")
    because = state["reason"] or "it does not say why"
    last = state.get("log", "").strip().splitlines()
    if last:
        because += f"; last in its crash log: {last[-1]}"
    raise UsageError(f"the firmware does not start: {because}")
