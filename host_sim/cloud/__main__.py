"""`python -m host_sim.cloud`: the test cloud alone."""

import argparse
import sys

from .cli import add_arguments, run

parser = argparse.ArgumentParser(prog="host_sim cloud", description="The test cloud.")
add_arguments(parser)
sys.exit(run(parser.parse_args()))
