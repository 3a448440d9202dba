"""`python -m host_sim device|cloud|talk|board|echo`: the simulator's command line."""

import importlib
import sys

from host_sim.usage import Parser, exit_status

# command -> (module with add_arguments and run, what it does)
COMMANDS = {
    "device": ("host_sim.device", "run the firmware as one device"),
    "cloud": ("host_sim.cloud.cli", "run the test cloud"),
    "talk": ("host_sim.talk", "hold a spoken conversation: cloud, device, picture"),
    "board": ("host_sim.virtual_board.cli", "run the firmware as a board that is flashed"),
    "echo": ("host_sim.echo", "run only the firmware's WebSocket client, as an echo"),
}


@exit_status
def main(arguments: list[str]) -> int:
    usage = "python -m host_sim device|cloud|talk|board|echo [options]"
    parser = Parser(prog="host_sim", usage=usage, description=__doc__)
    parser.add_argument(
        "command", choices=COMMANDS, help="; ".join(f"{c}: {d}" for c, (_, d) in COMMANDS.items())
    )
    command = parser.parse_args(arguments[:1] or ["--help"]).command
    module = importlib.import_module(COMMANDS[command][0])
    own = Parser(prog=f"host_sim {command}", description=COMMANDS[command][1])
    module.add_arguments(own)
    return module.run(own.parse_args(arguments[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
