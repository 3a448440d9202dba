"""RFC 6455 as a table of cases for the firmware's client: `python -m tools.conformance`."""
