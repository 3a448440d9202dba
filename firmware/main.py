"""Starts the firmware; whatever is wrong with what was installed ends at the prompt."""

try:
    from parley import start
except (ImportError, ValueError, SyntaxError) as error:
    # ValueError: .mpy files that were compiled for another MicroPython
    print("parley: the installation is not complete (%s); run `make deploy`" % error)
else:
    start.main()
