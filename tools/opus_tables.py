"""Compute the tables of the Opus decoder that depend on the output rate.

Writes celt_rates.py and silk_rates.py.

Run by hand after a change here: `python -m tools.opus_tables`. What the RFC fixes (code books and
so on) is not made here. Needs numpy.
"""

import pathlib

import numpy as np

OUT = pathlib.Path(__file__).resolve().parent.parent / "firmware/lib/opus"
STEPS = (1, 2, 3, 4, 6)
COMB = {  # RFC 6716 section 4.3.7.1: taps 0, +-1, +-2
    0: (0.3066406250, 0.2170410156, 0.1296386719),
    1: (0.4638671875, 0.2680664062, 0.0),
    2: (0.7998046875, 0.1000976562, 0.0),
}
COMB_TAPS = 8  # from lag - 3 to lag + 4
EMPHASIS_TAPS = 6
POLE = 27853 / 32768
#: The SILK layer's delay in samples of its own, beside that of the doubling in `resamp`, by kHz:
#: what libopus has and its encoder reckons with.
SILK_DELAYS = {8: 3.477, 12: 7.477, 16: 10.477}


def fit(target, weight, omega, lags):
    """Return the real taps at `lags` whose response is nearest to `target`."""
    basis = np.exp(-1j * np.outer(omega, lags)) * weight[:, None]
    wanted = target * weight
    left = np.concatenate([basis.real, basis.imag])
    right = np.concatenate([wanted.real, wanted.imag])
    return np.linalg.lstsq(left, right, rcond=None)[0]


def emphasis(step):
    """Return (delay, taps, pole) of a de-emphasis at 48 kHz / step."""
    omega = np.linspace(0.0005, np.pi, 4000)
    pole = POLE**step
    denominator = 1 - pole * np.exp(-1j * omega)
    response = denominator / (1 - POLE * np.exp(-1j * omega / step))
    weight = 1 / abs(denominator)
    best = None
    for delay in np.arange(0.5, 3, 0.01):
        target = response * np.exp(-1j * omega * delay)
        taps = fit(target, weight, omega, np.arange(EMPHASIS_TAPS))
        error = np.exp(-1j * np.outer(omega, np.arange(EMPHASIS_TAPS))) @ taps - target
        cost = np.sum(abs(error * weight) ** 2)
        if best is None or cost < best[0]:
            best = cost, delay, taps
    return best[1], best[2], pole


def comb(step, phase, tapset):
    """Return the taps from lag - 3 on of the post-filter whose lag is `phase` / step longer."""
    omega = np.linspace(0.0005, np.pi, 2000)
    middle, one, two = COMB[tapset]
    response = middle + 2 * one * np.cos(omega / step) + 2 * two * np.cos(2 * omega / step)
    target = response * np.exp(-1j * omega * phase / step)
    if step == 1:
        taps = np.zeros(COMB_TAPS)
        taps[1:6] = two, one, middle, one, two
        return taps
    weight = 1 / (1 + (omega / 0.7) ** 2)
    return fit(target, weight, omega, np.arange(COMB_TAPS) - 3)


def words(values):
    """Return 16-bit little-endian bytes."""
    return b"".join((int(value) & 0xFFFF).to_bytes(2, "little") for value in values)


def literal(data):
    """Return lines of a bytes literal."""
    lines = []
    for start in range(0, len(data), 22):
        part = "".join(f"\\x{byte:02x}" for byte in data[start : start + 22])
        lines.append(f'    b"{part}"\n')
    return "".join(lines)


def main():
    """Write the module."""
    quarter = words(np.round(8192 * np.sin(np.pi / 2 * np.arange(1921) / 1920)))
    text = '"""Tables that depend on the output rate; made by tools/opus_tables.py.\n\n'
    text += "All are numbers of 16 bits, low byte first. By 48 kHz / rate:\n"
    text += (
        "`WINDOWS` (RFC 6716 section 4.3.7, Q15), `EMPHASIS` (pole in Q15, six taps in 1/724),\n"
    )
    text += (
        "`COMB` (post-filter, Q15, by tapset and remainder of the lag, eight taps), `DELAYS` (of\n"
    )
    text += 'the de-emphasis, in 1/100 output sample).\n"""\n\n'
    text += "#: A quarter of a sine, Q13, 1921 numbers.\nQUARTER = (\n" + literal(quarter) + ")\n"
    windows, emphases, combs, delays = {}, {}, {}, {}
    for step in STEPS:
        length = 120 // step
        place = np.pi / 2 * (np.arange(length) + 0.5) / length
        windows[step] = words(np.round(32768 * np.sin(np.pi / 2 * np.sin(place) ** 2)))
        if step == 1:
            delays[step], taps, pole = 0, np.array([1, 0, 0, 0, 0, 0]), POLE
        else:
            delay, taps, pole = emphasis(step)
            delays[step] = round(100 * delay)
        emphases[step] = words([round(pole * 32768), *np.round(taps * 724)])
        combs[step] = b"".join(
            words(np.round(32768 * comb(step, phase, tapset)))
            for tapset in range(3)
            for phase in range(step)
        )
    for name, table in (("WINDOWS", windows), ("EMPHASIS", emphases), ("COMB", combs)):
        text += f"{name} = {{\n"
        for step, data in table.items():
            text += f"    {step}: (\n" + literal(data).replace("    b", "        b") + "    ),\n"
        text += "}\n"
    text += f"DELAYS = {delays}\n"
    (OUT / "celt_rates.py").write_text(text)
    silk(delays)


def silk(celt_delays):
    """Write the resampler's module; its delay makes SILK and CELT meet at each rate."""
    text = (
        '"""Taps of `resamp` by kHz of SILK and 48 kHz / rate; made by tools/opus_tables.py.\n\n'
    )
    text += (
        "An entry is (delay, phases, inputs for as many outputs, numbers): Q14, low byte first,\n"
    )
    text += 'the taps of a phase from the newest sample on."""\n\nRESAMPLERS = {\n'
    for khz in (8, 12, 16):
        for step in STEPS:
            common = np.gcd(48 // step, khz)
            phases, inputs = int(48 // step // common), int(khz // common)
            late = celt_delays[step] / 100 * step - (step - 1) / 2
            delay = SILK_DELAYS[khz] + late * khz / 48
            if khz * step == 48:
                # no filter: exactly what SILK decodes, as late as the filters would make it
                waits, data = round(delay + 1.9), b""
            else:
                waits = int(delay) - (0 if phases > inputs else 3)
                count = 48 if step == 1 else 16
                places = [phase * inputs / phases % 1 for phase in range(phases)]
                data = [
                    phase_taps(delay - waits, place, phases / inputs, count) for place in places
                ]
                data = words(np.round(16384 * np.array(data)).ravel())
            text += (
                f"    ({khz}, {step}): (\n        {waits},\n        {phases},\n        {inputs},\n"
            )
            text += literal(data).replace("    b", "        b") or '        b"",\n'
            text += "    ),\n"
    (OUT / "silk_rates.py").write_text(text + "}\n")


def doubling(omega):
    """Return the responses of the allpasses with which libopus makes two samples of one."""
    late = np.exp(-1j * omega)
    responses = []
    for numbers in ((1746, 14986, 39083), (6854, 25769, 55542)):
        poles = [number / 65536 for number in numbers]
        responses.append(np.prod([(pole + late) / (1 + pole * late) for pole in poles], axis=0))
    return responses


def phase_taps(delay, place, ratio, count):
    """Return taps that do what libopus does, for an output `place` samples behind the newest.

    It doubles the rate and goes from there to the output's; `delay` is that of its second filter.
    Long filters are as good up to the band's end, short ones to 7/8 of it.
    """
    omega = np.linspace(0.0005, np.pi, 2000)
    size = 8 if ratio >= 1.4 else 16
    first = int(2 * (place - delay) + size / 2)
    second = delayed(2 * (delay - place) + first, size, ratio / 2)
    halves = doubling(omega)
    target = 0
    for tap, doubled in zip(second, range(first, first - size, -1), strict=True):
        target += tap * halves[doubled & 1] * np.exp(1j * omega * (doubled >> 1))
    weight = np.where(omega < 0.875 * np.pi * min(1, ratio), 1, 0.3 if count > 16 else 0.02)
    return fit(target, weight, omega, np.arange(count))


def delayed(delay, count, ratio):
    """Return taps that delay by `delay` samples; the upper half of the band is empty."""
    omega = np.linspace(0.0005, np.pi, 2000)
    top = np.pi * min(0.47, 0.43 * 2 * ratio)
    target = np.exp(-1j * omega * delay) * (omega < 1.08 * top)
    weight = np.where(omega < top, 1, 0.003 if ratio >= 0.5 else 0.1)
    weight = np.where((omega >= top) & (omega < 1.15 * top), 0.001, weight)
    return fit(target, weight, omega, np.arange(count))


if __name__ == "__main__":
    main()
