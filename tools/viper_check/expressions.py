"""Expressions of viper code, rewritten into expressions that check themselves.

Each method returns a syntax tree and the type that viper's compiler gives it.
"""

import ast
import contextlib

from .faults import ViperTypeError
from .source import fold

_SMALL = 1 << 30
SIZES = {"ptr": 1, "ptr8": 1, "ptr16": 2, "ptr32": 4}
_CASTS = {"int", "uint", "bool", *SIZES}
_LIMITS = {"int": (-(1 << 31), (1 << 31) - 1), "uint": (0, (1 << 32) - 1)}
STORES = {1: (-128, 255), 2: (-32768, 65535)}
_NEVER_LEAVE = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.RShift, ast.Mod)


def name_node(text, store=False):
    """A local or a helper, to read or to set."""
    return ast.Name(text, ast.Store() if store else ast.Load())


def call_node(function, *arguments):
    """A call of a helper."""
    return ast.Call(name_node(function), list(arguments), [])


def number_node(value):
    """A number."""
    return ast.Constant(value)


class Expressions:
    """One function's expressions, and what is known of its locals."""

    def __init__(self, node, constants, wraps, path):
        self._node = node
        self._constants = constants
        self._wraps = wraps
        self._path = path
        self._types = {}
        self._order = []  # of the locals: the compiler keeps the first two in registers
        self._far_stores = []
        self._far_loads = []
        self._names_used = False
        self._tries = False
        self._held = False  # whether an operation's result waits in a register meanwhile
        self._wrap = False
        self._temporaries = 0
        self._result = node.returns.id if isinstance(node.returns, ast.Name) else "object"
        arguments = node.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            self._refuse(node, "positional arguments only")
        self._locals = {argument.arg for argument in arguments.args}
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                self._locals.add(inner.id)
            elif isinstance(inner, ast.Global):
                self._refuse(inner, "global is not followed")

    def _refuse(self, node, what):
        raise ViperTypeError(f"{self._path}:{node.lineno}: {what}")

    def _temporary(self):
        self._temporaries += 1
        return f"t{self._temporaries}__"

    def _test(self, node):
        return self._value(node)[0]

    def _value(self, node):
        constant = fold(node, self._shadowed())
        if constant is not None:
            kind = "int" if -_SMALL <= constant < _SMALL else "object"
            return ast.copy_location(number_node(constant), node), kind
        method = getattr(self, "_of_" + type(node).__name__.lower(), None)
        if method is None:
            for field, child in ast.iter_fields(node):
                if isinstance(child, ast.expr):
                    setattr(node, field, self._value(child)[0])
                elif isinstance(child, list):
                    setattr(
                        node,
                        field,
                        [self._value(c)[0] if isinstance(c, ast.expr) else c for c in child],
                    )
            return node, "object"
        made, kind = method(node)
        return ast.copy_location(made, node), kind

    def _shadowed(self):
        if self._locals.isdisjoint(self._constants):
            return self._constants
        return {k: v for k, v in self._constants.items() if k not in self._locals}

    def _of_constant(self, node):
        return node, "bool" if isinstance(node.value, bool) else "object"

    def _of_name(self, node):
        if node.id in self._locals:
            if node.id not in self._types:
                self._refuse(node, f"local '{node.id}' used before type known")
            return name_node(node.id), self._types[node.id]
        self._names_used = True
        return name_node(node.id), "object"

    def _of_attribute(self, node):
        self._names_used = True
        return ast.Attribute(self._value(node.value)[0], node.attr, node.ctx), "object"

    def _of_binop(self, node):
        return self._binary(node, node.left, node.op, node.right)

    def _binary(self, node, left, operator, right):
        made = self._value(left)
        with self._holding(left):
            return self._binary_of(node, made, operator, self._value(right))

    @contextlib.contextmanager
    def _holding(self, *nodes):
        before = self._held
        self._held = before or any(
            isinstance(node, ast.BinOp) and fold(node, self._shadowed()) is None for node in nodes
        )
        yield
        self._held = before

    def _in_turn(self, nodes):
        """Values of which the earlier ones wait while the later ones are worked out."""
        made = []
        for index, node in enumerate(nodes):
            with self._holding(*nodes[:index]):
                made.append(self._value(node))
        return made

    def _binary_of(self, node, left, operator, right):
        left, kind = left
        right, right_kind = right
        if kind not in _LIMITS or right_kind not in _LIMITS:
            if kind != "object" or right_kind != "object":
                self._refuse(node, f"can't do binary op between '{kind}' and '{right_kind}'")
            return ast.BinOp(left, operator, right), "object"
        if isinstance(operator, ast.LShift | ast.RShift):
            right = self._amount(node, right)
        elif isinstance(operator, ast.FloorDiv | ast.Mod):
            if kind != "int":
                self._refuse(node, "div/mod not implemented for uint")
        elif kind != right_kind and isinstance(operator, ast.BitAnd | ast.BitOr | ast.BitXor):
            right = self._signed(right) if kind == "int" else self._unsigned(right)
        elif (
            not isinstance(operator, ast.Add | ast.Sub | ast.Mult)
            and kind == right_kind
            and (not isinstance(operator, _NEVER_LEAVE))
        ):
            self._refuse(node, f"binary op {type(operator).__name__} not implemented")
        value = ast.copy_location(ast.BinOp(left, operator, right), node)
        if isinstance(operator, _NEVER_LEAVE):
            return value, kind
        return self._kept(node, value, kind), kind

    def _amount(self, node, amount):
        if isinstance(amount, ast.Constant):
            if not 0 <= amount.value <= 31:
                self._refuse(node, f"a shift by {amount.value}")
            return amount
        if self._wrap:
            return ast.BinOp(amount, ast.BitAnd(), number_node(31))
        return self._limited(amount, 0, 31, "__left_shift")

    def _kept(self, node, value, kind):
        """`value` if it fits its register, or what the register keeps of it."""
        if self._wrap:
            return self._signed(value) if kind == "int" else self._unsigned(value)
        low, high = _LIMITS[kind]
        return self._limited(value, low, high, f"__left_{kind}", node)

    def _limited(self, value, low, high, otherwise, node=None):
        name = self._temporary()
        keep = ast.NamedExpr(name_node(name, True), value)
        test = ast.Compare(number_node(low), [ast.LtE(), ast.LtE()], [keep, number_node(high)])
        call = call_node(otherwise, name_node(name))
        if node is not None:
            ast.copy_location(call, node)
        return ast.IfExp(test, name_node(name), call)

    def _signed(self, value):
        half = number_node(1 << 31)
        low = ast.BinOp(
            ast.BinOp(value, ast.Add(), half), ast.BitAnd(), number_node((1 << 32) - 1)
        )
        return ast.BinOp(low, ast.Sub(), half)

    def _unsigned(self, value):
        return ast.BinOp(value, ast.BitAnd(), number_node((1 << 32) - 1))

    def _of_unaryop(self, node):
        value, kind = self._value(node.operand)
        if isinstance(node.op, ast.Not) or kind == "object":
            return ast.UnaryOp(node.op, value), "bool" if kind != "object" else "object"
        if kind not in _LIMITS:
            self._refuse(node, f"can't do unary op of '{kind}'")
        if isinstance(node.op, ast.UAdd):
            return value, kind
        if isinstance(node.op, ast.Invert):
            if self._held:
                self._refuse(
                    node,
                    "mpy-cross loses the result to the left of ~ here: write -1 - x instead of ~x",
                )
            inverted = ast.UnaryOp(ast.Invert(), value)
            return (inverted if kind == "int" else self._unsigned(inverted)), kind
        return self._kept(node, ast.UnaryOp(ast.USub(), value), kind), kind

    def _of_compare(self, node):
        parts = self._in_turn([node.left, *node.comparators])
        kinds = {kind for _, kind in parts}
        if len(kinds) > 1:
            if kinds == {"int", "uint"}:
                self._refuse(node, "comparison of int and uint")
            names = "' and '".join(kind for _, kind in parts)
            self._refuse(node, f"can't do binary op between '{names}'")
        values = [value for value, _ in parts]
        made = ast.Compare(values[0], node.ops, values[1:])
        return made, "object" if kinds == {"object"} else "bool"

    def _of_boolop(self, node):
        parts = [self._value(part) for part in node.values]
        return ast.BoolOp(node.op, [value for value, _ in parts]), parts[0][1]

    def _of_ifexp(self, node):
        test = self._test(node.test)
        body, kind = self._value(node.body)
        other, other_kind = self._value(node.orelse)
        if kind != other_kind:
            self._refuse(node, f"a choice between '{kind}' and '{other_kind}'")
        return ast.IfExp(test, body, other), kind

    def _of_subscript(self, node):
        base, kind = self._value(node.value)
        if kind not in SIZES:
            return ast.Subscript(base, self._value(node.slice)[0], ast.Load()), "object"
        if not 0 <= (fold(node.slice, self._shadowed()) or 0) <= 255:
            self._far_loads.append((node, getattr(node.value, "id", "the pointer")))
        if isinstance(node.value, ast.Name):
            view = name_node(node.value.id + "__v")
            return ast.Subscript(view, self._place(node), ast.Load()), "int"
        index = self._value(node.slice)[0]
        return call_node("__load", base, number_node(SIZES[kind]), index), "int"

    def _place(self, node):
        """The index of a pointer's element in the pointer's view."""
        start = name_node(node.value.id + "__o")
        index, kind = self._value(node.slice)
        if kind not in _LIMITS:
            self._refuse(node, f"can't load with '{kind}' index")
        place = ast.BinOp(start, ast.Add(), index)
        if isinstance(index, ast.Constant) and index.value >= 0:
            return place
        name = self._temporary()
        keep = ast.NamedExpr(name_node(name, True), place)
        test = ast.Compare(keep, [ast.GtE()], [number_node(0)])
        call = ast.copy_location(call_node("__before_buffer", name_node(name)), node)
        return ast.IfExp(test, name_node(name), call)

    def _of_call(self, node):
        if (
            isinstance(node.func, ast.Name)
            and node.func.id in _CASTS
            and node.func.id not in self._locals
        ):
            return self._cast(node)
        if node.keywords:
            self._refuse(node, "keyword arguments are not followed")
        function = self._value(node.func)[0]
        return ast.Call(function, [value for value, _ in self._in_turn(node.args)], []), "object"

    def _cast(self, node):
        to = node.func.id
        constant = fold(node.args[0], self._shadowed())
        value, kind = self._value(node.args[0])
        if constant is not None and to in _LIMITS:
            limits = -(1 << 31), (1 << 32) - 1
            if not limits[0] <= constant <= limits[1]:
                self._refuse(node, f"{constant} has more than 32 bits")
            return number_node(_as(to, constant)), to
        if to in SIZES:
            if kind in ("uint", "bool"):
                value = call_node("int", value)
            return value, to
        if kind in SIZES:
            value = call_node("__address", value)
            kind = "int"
        if kind == "bool":
            return call_node("int", value), to
        if kind == to:
            return value, to
        if to == "bool":
            return call_node("bool", value), to
        if kind == "object":
            return call_node(f"__to_{to}", value), to
        return (self._signed(value) if to == "int" else self._unsigned(value)), to


def _as(kind, value):
    if kind == "uint":
        return value & 0xFFFFFFFF
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000
