"""`esp` of the simulated chip, as far as tools ask for it."""

import power


def flash_size():
    """Bytes of the flash chip."""
    return power.flash_bytes
