"""Where each moment of a trace lies in the picture, so that no label covers another.

Time runs downwards at a fixed scale with two exceptions. Where much happens at once it is
stretched: of two things in one column the later lies at least the earlier's height below it.
Where nothing happens it is cut: a long gap becomes two short ends and a break mark between.
"""

from bisect import bisect_right

PIXELS_PER_MS = 0.040
BREAK_HEIGHT = 28

# Gaps between two knots longer than `limit` ms are cut and keep `end` ms at both sides.
_SILENT = (2500, 850)
_WITH_AUDIO = (3400, 1200)


class Scale:
    """The time axis: `at[k]` is the height of knot k, `height(ms)` of any time.

    knots: ascending times in ms. needs: (earlier knot, later knot, pixels) triples, each asking
    for at least so many pixels between two knots. audio: (start, end) ms in which sound is shown,
    where more of a gap is kept. breaks: (top pixel, ms left out) of each cut.
    """

    def __init__(self, knots, needs, audio, top):
        self.breaks = []
        self.at = []
        self._times = []
        self._heights = []
        self._audio = _merged(audio)
        wanted = {}
        for earlier, later, pixels in needs:
            wanted.setdefault(later, []).append((earlier, pixels))
        y = float(top)
        before = knots[0] if knots else 0.0
        self._mark(before, y)
        for index, time in enumerate(knots):
            # A need may reach down from above the first knot: earlier is None then.
            low = y
            for earlier, pixels in wanted.get(index, ()):
                low = max(low, (top if earlier is None else self.at[earlier]) + pixels)
            y = self._advance(before, time, y, low)
            self.at.append(y)
            before = time

    def height(self, time):
        """Returns the y coordinate of a time in ms."""
        index = bisect_right(self._times, time)
        if index == 0:
            return self._heights[0]
        if index == len(self._times):
            return self._heights[-1]
        start, end = self._times[index - 1], self._times[index]
        share = (time - start) / (end - start)
        above, below = self._heights[index - 1], self._heights[index]
        return above + (below - above) * share

    def ticks(self, apart):
        """Returns (seconds, y) of whole seconds at least `apart` pixels from each other."""
        found = []
        last = float("-inf")
        for start, end, y_start, y_end in zip(
            self._times, self._times[1:], self._heights, self._heights[1:], strict=False
        ):
            if any(y_start <= y < y_end for y, _ in self.breaks):
                last = max(last, y_end)
                continue
            for second in range(-int(-start // 1000), int(end // 1000) + 1):
                y = self.height(second * 1000.0)
                if y - last >= apart:
                    found.append((second, y))
                    last = y
        return found

    def _advance(self, before, time, y, low):
        gap = time - before
        limit, kept = _WITH_AUDIO if self._has_audio(before, time) else _SILENT
        if gap <= limit:
            y = max(y + gap * PIXELS_PER_MS, low)
            self._mark(time, y)
            return y
        y += kept * PIXELS_PER_MS
        self._mark(before + kept, y)
        self.breaks.append((y, gap - 2 * kept))
        y += BREAK_HEIGHT
        self._mark(time - kept, y)
        y = max(y + kept * PIXELS_PER_MS, low)
        self._mark(time, y)
        return y

    def _mark(self, time, y):
        self._times.append(time)
        self._heights.append(y)

    def _has_audio(self, start, end):
        index = bisect_right(self._audio, (start, float("inf")))
        spans = self._audio[max(index - 1, 0) : index + 1]
        return any(begin < end and finish > start for begin, finish in spans)


def _merged(spans):
    merged = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def stack(boxes):
    """Returns the needs of one column: (first knot, last knot, above, below) in order of time.

    above, below: pixels that the thing's labels take outside its first and last knot. Each lies
    below the one before it, and a thing whose inside is labelled asks for its own height with a
    separate need.
    """
    needs = []
    previous = None
    for first, last, above, below in boxes:
        if previous is None:
            needs.append((None, first, above))
        else:
            needs.append((previous[0], first, previous[1] + above))
        if previous is None or last >= previous[0]:
            previous = (last, below)
        else:
            previous = (previous[0], previous[1])
    return needs
