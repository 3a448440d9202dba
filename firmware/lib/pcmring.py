"""A byte ring for audio between one producer and one consumer, in memory made once.

With a copy: `write`, `readinto` and `fill`. Without: `writable`, fill the view, `commit`;
`readable`, use the view, `consume`. What happens when it is full is the constructor's choice.
Nothing allocates but the views.
"""


class Ring:
    """A ring of `size` bytes.

    `drop_oldest` 0: a producer writes no more than `free()`; nothing is ever lost.
    `drop_oldest` n: room is made by dropping the oldest frame of n bytes, or what the consumer has
    left of it. Frames count from the start of the stream (the last `clear`), so `size` must be a
    multiple of n. Then a view from `readable` is good only until the producer writes.
    """

    def __init__(self, size, drop_oldest=0):
        if size <= 0 or (drop_oldest and size % drop_oldest):
            raise ValueError("a ring holds a whole number of frames, at least one")
        self._view = memoryview(bytearray(size))
        self._size = size
        self._frame = drop_oldest
        self._head = 0  # where the consumer reads; stays below size
        self._used = 0
        #: frames dropped because the ring was full
        self.dropped = 0
        #: the most bytes that were ever waiting
        self.peak = 0

    def __len__(self):
        return self._used

    def available(self):
        """Return how many bytes wait for the consumer."""
        return self._used

    def free(self):
        """Return how many bytes fit without loss."""
        return self._size - self._used

    def writable(self, limit):
        """Return a view of the next free bytes, at most `limit`; shorter at the ring's end.

        When the ring drops, room for `limit` is made first. When it does not, a full ring gives an
        empty view.
        """
        if self._frame:
            self._make_room(min(limit, self._size))
        tail = self._head + self._used
        if tail >= self._size:
            tail -= self._size
        return self._view[tail : tail + min(limit, self._size - self._used, self._size - tail)]

    def commit(self, count):
        """Hand the first `count` bytes of the last `writable` view to the consumer."""
        if not 0 <= count <= self._size - self._used:
            raise ValueError("commit of more than is free")
        self._used += count
        if self._used > self.peak:
            self.peak = self._used

    def readable(self, limit):
        """Return a view of the oldest bytes, at most `limit`; shorter at the ring's end."""
        head = self._head
        return self._view[head : head + min(limit, self._used, self._size - head)]

    def consume(self, count):
        """Free the oldest `count` bytes."""
        if not 0 <= count <= self._used:
            raise ValueError("consume of more than is available")
        self._used -= count
        self._head += count
        if self._head >= self._size:
            self._head -= self._size

    def write(self, buffer, count):
        """Copy `count` bytes of `buffer` in; return how many fitted (all, if it drops)."""
        source = memoryview(buffer)
        done = 0
        while done < count:
            view = self.writable(count - done)
            length = len(view)
            if length == 0:
                break
            view[:] = source[done : done + length]
            self.commit(length)
            done += length
        return done

    def readinto(self, buffer, count):
        """Move up to `count` of the oldest bytes to the start of `buffer`; return how many."""
        target = memoryview(buffer)
        done = 0
        while done < count:
            view = self.readable(count - done)
            length = len(view)
            if length == 0:
                break
            target[done : done + length] = view
            self.consume(length)
            done += length
        return done

    def fill(self, buffer, count):
        """As `readinto`, and silence for what it lacks."""
        for index in range(self.readinto(buffer, count), count):
            buffer[index] = 0

    def clear(self):
        """Forget what waits; the counters stay."""
        self._head = 0
        self._used = 0

    def _make_room(self, count):
        while self._size - self._used < count:
            # size is a multiple of the frame, so frames never straddle the ring's end
            self.consume(min(self._used, self._frame - self._head % self._frame))
            self.dropped += 1
