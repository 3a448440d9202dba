"""parley: the product. `app` builds it, `session` decides, the floors are in docs and tests."""

VERSION = "0.1.0"
