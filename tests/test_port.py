"""Waiting for the board after a reset, with a stand-in for the serial layer and for the clock."""

import pytest

from host_sim.usage import UsageError
from tools.port import BACK_S, LOADER_IDS, PROGRAM_IDS, Port, wait

BOARD = Port("/dev/ttyACM0", "F4:12:FA:00:11:22", "1-2", LOADER_IDS)
# MicroPython writes the same address without colons, in small letters
RUNNING = Port("/dev/ttyACM1", "f412fa001122", "1-2", PROGRAM_IDS)
OTHER = Port("/dev/ttyACM0", "F4:12:FA:99:99:99", "1-3", LOADER_IDS)
BRIDGE = Port("/dev/ttyUSB0", "", "1-4", (0x1A86, 0x7523))


class Bus:
    """`plugged`: (since when, ports) in order of time."""

    def __init__(self, *plugged):
        self._plugged = plugged
        self.now = 0.0

    def find(self):
        return next(ports for since, ports in reversed(self._plugged) if since <= self.now)

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    def wait(self, board, **options):
        return wait(board, find=self.find, clock=self.clock, sleep=self.sleep, **options)


@pytest.mark.parametrize("gone_s", [0, 0.5, 3, 20])
def test_the_same_board_under_another_name_never_the_other_one(gone_s):
    bus = Bus((0, [OTHER]), (gone_s, [OTHER, RUNNING]))
    assert bus.wait(BOARD) == RUNNING
    assert bus.now <= gone_s + 0.5


def test_a_board_that_never_returns_is_given_up_with_what_to_press():
    bus = Bus((0, [OTHER]))
    with pytest.raises(UsageError, match="press RESET.*hold BOOT, press RESET"):
        bus.wait(BOARD)
    assert bus.now <= BACK_S + 1 <= 31


def test_the_loader_is_not_taken_for_the_program():
    bus = Bus((0, [RUNNING]), (2, [BOARD]))
    assert bus.wait(RUNNING, ids=LOADER_IDS) == BOARD


def test_a_bridge_without_serial_number_is_known_by_its_socket():
    elsewhere = Port("/dev/ttyUSB0", "", "1-5", BRIDGE.ids)
    again = Port("/dev/ttyUSB1", "", "1-4", BRIDGE.ids)
    assert Bus((0, [elsewhere]), (1, [elsewhere, again])).wait(BRIDGE) == again
