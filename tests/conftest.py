"""What every test stands on: Ctrl-C reaches the programs that a test starts."""

import signal

# A shell starts its background jobs with Ctrl-C ignored, and whatever they start inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
