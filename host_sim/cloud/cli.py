"""The command `cloud`: its options, its one line on standard output, its exit codes."""

import asyncio
import contextlib
import logging
import os
import signal
import sys

from .config import Config, ConfigError
from .server import Cloud


def add_arguments(parser):
    """Add the options of simulator-cli.md to an argparse parser."""
    parser.add_argument("--port", type=int, default=0, help="0 picks one and prints it")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument(
        "--protocol",
        choices=("ai-session", "xiaozhi", "both"),
        default="ai-session",
        help="both: a Protocol-Version header, a path below /xiaozhi/ or a hello is xiaozhi",
    )
    parser.add_argument("--asr", default="pocketsphinx", help="scripted:FILE or pocketsphinx")
    parser.add_argument("--agent", default="rules", help="echo or rules")
    parser.add_argument("--tts", default="espeak", help="tone, espeak or none (xiaozhi only)")
    parser.add_argument("--cert", metavar="FILE", help="PEM certificate: serve wss://")
    parser.add_argument("--key", metavar="FILE", help="PEM key of the certificate")
    parser.add_argument("--token", help="bearer token that a device must present")
    parser.add_argument("--record", metavar="DIR", help="keep each session's messages and audio")


def run(args):
    """Serve until interrupted. Return 0, or 2 with one line on standard error."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    try:
        asyncio.run(_serve(_config(args)))
    except ConfigError as error:
        print(f"cloud: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0
    return 0


def _config(args):
    if not 0 <= args.port <= 65535:
        raise ConfigError("--port must be 0 to 65535")
    if args.token is not None and not (args.token.isascii() and args.token.isprintable()):
        raise ConfigError("--token must be printable ASCII")
    if args.record is not None:
        try:
            os.makedirs(args.record, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"--record {args.record}: {error}") from error
    return Config(
        protocol=args.protocol,
        host=args.host,
        port=args.port,
        asr=args.asr,
        agent=args.agent,
        tts=args.tts,
        cert=args.cert,
        key=args.key,
        token=args.token,
        record=args.record,
    )


async def _serve(config):
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not every platform has it; there Ctrl-C arrives as KeyboardInterrupt.
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with Cloud(config) as cloud:
        if cloud.ota_url is not None:
            logging.getLogger("host_sim.cloud").info("pairing at %s", cloud.ota_url)
        print("listening on " + cloud.url, flush=True)
        await stopped.wait()
