"""Random viper functions that always end, for comparing two ways to run them."""

import random

_CONSTANTS = ("0", "1", "3", "-7", "95", "96", "255", "-2048", "4096", "99999")
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_POINTERS = ("p8", "p16", "p32")
_ELEMENTS = 256  # of each buffer, at least
_INDICES = ("0", "3", "15", "16", "255")


def function(name, parameters, *lines, result="int"):
    """Return the source of one viper function."""
    body = "".join(f"    {line}\n" for line in lines)
    return f"@micropython.viper\ndef {name}({parameters}) -> {result}:\n{body}"


class Program:
    """One function `name` of a, b, p8, p16 and p32 in an order of its own, and its buffers.

    It may call the functions named in `callees`, which take two numbers. Beside a, b and x it has
    `more` numbers of its own.
    """

    def __init__(self, name: str, chance: random.Random, callees=(), more=1):
        self._chance = chance
        self._callees = callees
        self._names = ["a", "b", "x", *(f"y{number}" for number in range(more))]
        #: the parameters in their order
        self.order = chance.sample(["a", "b", *_POINTERS], 5)
        types = {"a": "int", "b": "int", "p8": "ptr8", "p16": "ptr16", "p32": "ptr32"}
        parameters = ", ".join(f"{name}: {types[name]}" for name in self.order)
        own = [f"{name} = {self._pick('a', 'b', 'x')}" for name in self._names[3:]]
        lines = ["x = 5", *own, *self._block(chance.randrange(3, 8), 0)]
        lines.append(f"return {self._number(4)}  # wrap")
        self.source = function(name, parameters, *lines)

    def arguments(self, chance: random.Random) -> list:
        """Return random arguments, among them three bytearrays."""
        edges = [0, 1, -1, 2**31 - 1, -(2**31), 2**30, 65535, 65536, -65536]
        values = {name: bytearray(chance.randbytes(4 * _ELEMENTS)) for name in _POINTERS}
        for name in "ab":
            values[name] = chance.choice([chance.choice(edges), chance.randrange(-(2**31), 2**31)])
        return [values[name] for name in self.order]

    def _pick(self, *choices):
        return self._chance.choice(choices)

    def _element(self, depth):
        index = self._pick(*_INDICES, f"{self._number(depth)} & 15")
        return f"{self._pick(*_POINTERS)}[{index}]"

    def _right(self, depth):
        """A number to the right of an operator, where constants may stand."""
        return self._pick(*_CONSTANTS) if self._chance.random() < 0.2 else self._number(depth)

    def _number(self, depth):
        if depth <= 0 or self._chance.random() < 0.15:
            return self._pick(*self._names)
        forms = [self._operation] * 5 + [self._shift, self._shift, self._division, self._unsigned]
        forms += [self._unsigned, self._comparison, self._choice, self._element, self._element]
        forms += [self._negative] + [self._call] * bool(self._callees)
        return self._pick(*forms)(depth - 1)

    def _operation(self, depth):
        return f"({self._number(depth)} {self._pick(*'+-*&|^')} {self._right(depth)})"

    def _shift(self, depth):
        amount = self._pick(str(self._chance.randrange(32)), f"({self._number(depth)} & 31)")
        return f"({self._number(depth)} {self._pick('<<', '>>')} {amount})"

    def _division(self, depth):
        return f"({self._number(depth)} {self._pick('//', '%')} ({self._number(depth)} | 1))"

    def _unsigned(self, depth):
        left, right = self._number(depth), self._number(depth)
        operator = self._pick(*"+-*^|&", *_COMPARISONS)
        operation = f"uint({left}) {operator} uint({right})"
        if operator in _COMPARISONS:
            return f"int({operation})"
        return f"int(({operation}) >> {self._chance.randrange(32)})"

    def _comparison(self, depth):
        return f"int({self._number(depth)} {self._pick(*_COMPARISONS)} {self._right(depth)})"

    def _choice(self, depth):
        return f"({self._number(depth)} if {self._condition(depth)} else {self._number(depth)})"

    def _negative(self, depth):
        return f"(-{self._number(depth)})"

    def _call(self, depth):
        return f"int({self._pick(*self._callees)}({self._number(depth)}, {self._right(depth)}))"

    def _condition(self, depth):
        def comparison():
            return f"{self._number(depth)} {self._pick(*_COMPARISONS)} {self._right(depth)}"

        form = self._pick("{}", "{} and {}", "{} or {}", "not ({})", "number")
        if form == "number":
            return self._number(depth)
        return "(" + form.format(comparison(), comparison()) + ")"

    def _block(self, count, loops):
        lines = []
        for _ in range(count):
            lines += self._statement(loops)
        return lines

    def _inner(self, count, loops):
        return [f"    {line}" for line in self._block(count, loops + 1)]

    def _statement(self, loops):
        name = self._pick(*self._names)
        plain = ["set", "set", "change", "store", "store", "swap"]
        kind = self._pick(*plain, *(["if", "while", "for"] if loops < 2 else []))
        if kind == "while":
            counter = f"i{loops}"
            start = f"{counter} = {self._chance.randrange(1, 4)}"
            return [start, f"while {counter}:", *self._inner(2, loops), f"    {counter} -= 1"]
        if kind == "for":
            bounds = self._pick("3", "a & 3", "1, 4", "6, 0, -2")
            leave = self._pick("break", "continue")
            leaving = [f"    if {self._condition(1)}:  # wrap", f"        {leave}"]
            return [f"for j{loops} in range({bounds}):", *self._inner(2, loops), *leaving]
        if kind == "if":
            test = f"if {self._condition(2)}:  # wrap"
            return [test, *self._inner(2, loops), "else:", *self._inner(1, loops)]
        if kind == "swap":
            return [f"{name}, x = {self._number(2)}, {self._number(2)}  # wrap"]
        if kind == "store":
            operator = self._pick("", "+", "-", "*", "^")
            return [f"{self._element(1)} {operator}= {self._right(2)}  # wrap"]
        operator = self._pick(*"+-*^|&") if kind == "change" else ""
        return [f"{name} {operator}= {self._right(3)}  # wrap"]


def several(count: int, chance: random.Random) -> tuple[str, dict[str, Program]]:
    """Return a module's source, and its `count` programs by name; some call other functions."""
    callees = [f"twist{number}" for number in range(3)]
    source = "import micropython\n"
    for number, callee in enumerate(callees):
        source += function(callee, "a: int, b: int", f"return (a ^ b >> {number}) * 3  # wrap")
    programs = {}
    for number in range(count):
        name = f"f{number}"
        calls = chance.choice([(), callees])
        programs[name] = Program(name, chance, calls, more=chance.choice([1, 4, 25]))
    return source + "".join(program.source for program in programs.values()), programs
