"""Numbers in words and back, for an agent that hears and speaks: "thirty three" <-> 33.

Reading is tolerant of what a recogniser takes for a number: "for" is four, "to" is two
(`SOUNDS_LIKE`). Those are numbers only where one is expected, so the caller says where.
"""

# fmt: off
_UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)
_TENS = (
    "zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"
)
# fmt: on
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000}
_VALUES = {
    **{word: value for value, word in enumerate(_UNITS)},
    **{word: value * 10 for value, word in enumerate(_TENS) if value > 1},
    "oh": 0,
    "fourty": 40,
    "a": 1,
    "an": 1,
}
_ARTICLES = ("a", "an")
SOUNDS_LIKE = {"for": 4, "far": 4, "to": 2, "too": 2, "won": 1, "ate": 8, "tan": 10}
_LARGEST = 10**15


def number_before(words, end):
    """Return the value of the longest number whose last word is the one before `end`, or None."""
    first = end
    while first > 0 and (
        words[first - 1] in _SCALES
        or words[first - 1] == "and"
        or (_value(words[first - 1]) is not None)
    ):
        first -= 1
    for start in range(first, end):
        found = number_at(words, start)
        if found is not None and found[1] == end:
            return found[0]
    return None


def number_at(words, start):
    """Return (value, index past its last word) for the number that begins at `start`, or None."""
    total = group = 0
    index = start
    last = None  # size of the part before: 1 for units, 10 for tens, 100 for hundreds
    while index < len(words):
        word = words[index]
        if word.isdecimal() and word.isascii():
            if last is not None:
                break
            return min(int(word[:15]), _LARGEST), index + 1
        if word in _SCALES and group:
            last = _SCALES[word]
            if last == 100:
                group *= 100
            else:
                total, group = total + group * last, 0
        elif word == "and" and last is not None and last >= 100 and _follows(words, index + 1):
            pass
        else:
            value = _value(word)
            if value is None or (last is not None and not _fits(value, last)):
                break
            if word in _ARTICLES and not (index + 1 < len(words) and words[index + 1] in _SCALES):
                break
            group += value
            last = 10 if value >= 20 else 1
        index += 1
    return None if last is None else (min(total + group, _LARGEST), index)


def in_words(value):
    """Return a number below a thousand million in words, with at most two decimals."""
    if value < 0:
        return "minus " + in_words(-value)
    whole = int(value)
    hundredths = round((value - whole) * 100)
    if hundredths == 100:
        whole, hundredths = whole + 1, 0
    text = _whole_in_words(whole)
    if hundredths:
        digits = f"{hundredths:02d}".rstrip("0")
        text += " point " + " ".join(_UNITS[int(digit)] for digit in digits)
    return text


def _whole_in_words(value):
    if value >= 1_000_000_000:
        return str(value)
    for name, scale in (("million", 1_000_000), ("thousand", 1000), ("hundred", 100)):
        if value >= scale:
            head, rest = divmod(value, scale)
            text = _whole_in_words(head) + " " + name
            return text + (" " + _whole_in_words(rest) if rest else "")
    if value < 20:
        return _UNITS[value]
    tens, unit = divmod(value, 10)
    return _TENS[tens] + (" " + _UNITS[unit] if unit else "")


def _value(word):
    if word.isdecimal() and word.isascii():
        return int(word[:15])
    return _VALUES.get(word, SOUNDS_LIKE.get(word))


def _fits(value, last):
    """May `value` follow a part of size `last`? After a unit nothing does: "three four" is two."""
    return last >= 100 or (last == 10 and 0 < value < 10)


def _follows(words, index):
    return index < len(words) and _value(words[index]) is not None
