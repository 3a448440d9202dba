"""The display of a board below its driver, to be put in `world.i2c_devices`."""


class SSD1306:
    """The display's memory: 8 pages of 128 columns; commands as in its data sheet, chapter 9."""

    def __init__(self, width=128, height=64, on_change=None):
        self.width = width
        self.height = height
        self.on = False
        self.bytes_received = 0
        self._memory = bytearray(128 * 8)
        self._columns = (0, 127)
        self._pages = (0, 7)
        self._column = self._page = 0
        self._arguments = []
        self._command = None
        self.horizontal = False
        self._on_change = on_change  # called with the memory when data has come

    def write(self, data):
        self.bytes_received += len(data)
        if data[0] & 0x40:
            for byte in data[1:]:
                self._store(byte)
            if self._on_change:
                self._on_change(self._memory)
            return
        for byte in data[1:] if data[0] == 0 else data[1::2]:
            self._obey(byte)

    def _store(self, byte):
        self._memory[self._page * 128 + self._column] = byte
        self._column += 1
        if self._column > self._columns[1]:
            self._column = self._columns[0]
            self._page = self._page + 1 if self._page < self._pages[1] else self._pages[0]

    def _obey(self, byte):
        if self._command is not None:
            self._arguments.append(byte)
            if len(self._arguments) < self._wanted(self._command):
                return
            self._apply(self._command, self._arguments)
            self._command = None
        elif self._wanted(byte):
            self._command = byte
            self._arguments = []
        elif byte in (0xAE, 0xAF):
            self.on = byte == 0xAF

    @staticmethod
    def _wanted(command):
        if command in (0x21, 0x22):
            return 2
        return int(command in (0x20, 0x81, 0x8D, 0xA8, 0xD3, 0xD5, 0xD9, 0xDA, 0xDB))

    def _apply(self, command, arguments):
        if command == 0x20:
            self.horizontal = arguments[0] == 0
        elif command == 0x21:
            self._columns = tuple(arguments)
            self._column = arguments[0]
        elif command == 0x22:
            self._pages = tuple(arguments)
            self._page = arguments[0]

    def rows(self):
        """The picture as texts of `#` and `.`."""
        return [
            "".join(
                [
                    "#" if self._memory[y // 8 * 128 + x] >> (y % 8) & 1 else "."
                    for x in range(self.width)
                ]
            )
            for y in range(self.height)
        ]
