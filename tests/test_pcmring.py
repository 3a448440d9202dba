"""The byte ring against a bytearray, on every interpreter."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreters import RUNTIMES, Failed, workers

# Runs the operations on a ring and on a bytearray; what differs is an AssertionError.
DRIVER = """
from pcmring import Ring

def fresh(counter, count):
    return bytes([(counter + i) & 255 for i in range(count)])

def operate(size, frame, operations):
    ring = Ring(size, frame)
    model = bytearray()
    written = taken = dropped = peak = 0
    for name, count in operations:
        if name in ("write", "writable"):
            data = fresh(written, count)
            if frame:
                accepted = count
            else:
                accepted = min(count, size - len(model))
            if name == "write":
                assert ring.write(data, count) == accepted
            else:
                view = ring.writable(count)
                assert len(view) <= accepted
                assert len(view) > 0 or accepted == 0
                accepted = len(view)
                view[:] = data[:accepted]
                ring.commit(accepted)
            for byte in data[:accepted]:
                if frame and len(model) == size:
                    lost = frame - taken % frame
                    model = model[lost:]
                    taken += lost
                    dropped += 1
                model.append(byte)
                peak = max(peak, len(model))
            written += accepted
        elif name == "readinto":
            target = bytearray(count + 1)
            expected = min(count, len(model))
            assert ring.readinto(target, count) == expected
            assert target[:expected] == model[:expected]
            assert not any(target[expected:])
            model = model[expected:]
            taken += expected
        elif name == "fill":
            target = bytearray([255] * (count + 1))
            expected = min(count, len(model))
            ring.fill(target, count)
            assert target == model[:expected] + bytes(count - expected) + bytes([255])
            model = model[expected:]
            taken += expected
        elif name == "readable":
            view = ring.readable(count)
            length = len(view)
            assert bytes(view) == bytes(model[:length])
            assert length <= count and (length or not model or not count)
            ring.consume(length)
            model = model[length:]
            taken += length
        elif name == "clear":
            ring.clear()
            model = bytearray()
            taken = 0
        assert len(ring) == ring.available() == len(model)
        assert ring.free() == size - len(model)
        # room is made for a whole write at once, so a ring that drops may hold less at its peak
        assert ring.peak == peak if not frame else ring.peak <= size
    return ring.dropped, dropped, bytes(ring.readable(size))[:8], bytes(model[:8])
"""

OPERATION = st.tuples(
    st.sampled_from(["write", "writable", "readinto", "readable", "fill", "write"]),
    st.integers(0, 40),
)
OPERATIONS = st.lists(OPERATION | st.just(("clear", 0)), max_size=40)

worker = workers(RUNTIMES, DRIVER)


@given(size=st.integers(1, 32), operations=OPERATIONS)
@settings(max_examples=100)
def test_a_ring_that_keeps_everything_is_a_bytearray(worker, size, operations):
    dropped = worker.call("operate", size, 0, operations)[0]
    assert dropped == 0


@given(
    frame=st.integers(1, 8),
    frames=st.integers(1, 6),
    operations=st.lists(OPERATION, max_size=40),
)
@settings(max_examples=100)
def test_a_ring_that_drops_loses_the_oldest_frames(worker, frame, frames, operations):
    # whole frames in, so that room for a write and room for each byte are the same
    size = frame * frames
    whole = [
        (name if name != "writable" else "write", n // frame * frame) for name, n in operations
    ]
    dropped, expected, waiting, model = worker.call("operate", size, frame, whole)
    assert dropped == expected
    assert waiting[:1] == model[:1]


def test_the_oldest_frame_goes_and_the_rest_stays_in_order(worker):
    worker.define(
        """
def overfill():
    ring = Ring(12, 4)
    ring.write(b"aaaabbbbcccc", 12)
    ring.write(b"dddd", 4)
    target = bytearray(12)
    ring.readinto(target, 12)
    return bytes(target), ring.dropped, ring.peak
"""
    )
    assert worker.call("overfill") == (b"bbbbccccdddd", 1, 12)


def test_what_is_left_of_a_frame_half_read_is_dropped_so_that_frames_stay_aligned(worker):
    worker.define(
        """
def half_read():
    ring = Ring(12, 4)
    ring.write(b"aaaabbbbcccc", 12)
    ring.readinto(bytearray(2), 2)
    ring.write(b"dddd", 4)
    return bytes(ring.readable(12)) + bytes(ring.readable(12)), ring.available(), ring.dropped
"""
    )
    waiting, available, dropped = worker.call("half_read")
    assert waiting.startswith(b"bbbbcccc")
    assert (available, dropped) == (12, 1)


@pytest.mark.parametrize(("size", "frame"), [(0, 0), (-1, 0), (10, 4), (2, 4)])
def test_sizes_that_are_no_whole_number_of_frames_are_refused(worker, size, frame):
    with pytest.raises(Failed, match="ValueError"):
        worker.call("Ring", size, frame)


@pytest.mark.parametrize("count", [-1, 9])
@pytest.mark.parametrize("name", ["commit", "consume"])
def test_more_than_there_is_is_refused(worker, name, count):
    worker.define(
        """
def too_much(name, count):
    ring = Ring(16)
    ring.write(bytes(8), 8)
    getattr(ring, name)(count)
"""
    )
    with pytest.raises(Failed, match="ValueError"):
        worker.call("too_much", name, count)


def test_memory_stays_the_same_for_any_amount_of_audio(worker):
    if worker.runtime == "cpython":
        pytest.skip("counts MicroPython's heap")
    worker.define(
        """
import gc
def allocated(size):
    ring = Ring(16000)
    source = bytes(size)
    target = bytearray(size)
    gc.collect()
    gc.disable()
    before = gc.mem_alloc()
    for _ in range(50):
        ring.write(source, size)
        ring.readinto(target, size)
    used = gc.mem_alloc() - before
    gc.enable()
    return used // 50
"""
    )
    assert worker.call("allocated", 4096) - worker.call("allocated", 640) < 200
