"""Rewrite viper functions into Python that checks each operation, load and store.

Types are those of viper's compiler: a local has the type of what is first stored to it, in the
order of the source. A pointer `p` becomes three locals: `p` (the buffer or address it was made
of), `p__v` (a view of elements) and `p__o` (the index of its first element there).
"""

import ast
import contextlib
import re
import tokenize

from .faults import ViperTypeError

_SMALL = 1 << 30
_SIZES = {"ptr": 1, "ptr8": 1, "ptr16": 2, "ptr32": 4}
_CASTS = {"int", "uint", "bool", *_SIZES}
_LIMITS = {"int": (-(1 << 31), (1 << 31) - 1), "uint": (0, (1 << 32) - 1)}
_STORES = {1: (-128, 255), 2: (-32768, 65535)}
_FOLDED = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.LShift: lambda a, b: a << b,
    ast.RShift: lambda a, b: a >> b,
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitXor: lambda a, b: a ^ b,
}
_NEVER_LEAVE = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.RShift, ast.Mod)


def wrap_lines(path) -> set:
    """Return the numbers of the lines that carry the comment `# wrap`."""
    with tokenize.open(path) as file:
        return {
            token.start[0]
            for token in tokenize.generate_tokens(file.readline)
            if token.type == tokenize.COMMENT and re.match(r"#\s*wrap\b", token.string)
        }


def is_viper(node) -> bool:
    """Whether a function definition has the decorator `micropython.viper`."""
    return any(
        isinstance(decorator, ast.Attribute) and decorator.attr == "viper"
        for decorator in node.decorator_list
    )


def fold(node, constants):
    """Return the value of a constant integer expression as MicroPython's parser folds it."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.UnaryOp):
        value = fold(node.operand, constants)
        if value is not None and isinstance(node.op, ast.USub | ast.Invert | ast.UAdd):
            return {ast.USub: -value, ast.Invert: ~value, ast.UAdd: value}[type(node.op)]
    if isinstance(node, ast.BinOp) and type(node.op) in _FOLDED:
        left, right = fold(node.left, constants), fold(node.right, constants)
        if left is not None and right is not None:
            return _FOLDED[type(node.op)](left, right)
    return None


def module_constants(tree) -> dict:
    """Return the names that `const` gives an integer at the module's top."""
    constants = {}
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Name)
            and node.value.func.id == "const"
            and isinstance(node.targets[0], ast.Name)
        ):
            value = fold(node.value.args[0], constants)
            if value is not None:
                constants[node.targets[0].id] = value
    return constants


def transform_module(tree, path):
    """Replace the viper functions of a module's tree, in place."""
    constants = module_constants(tree)
    wraps = wrap_lines(path)
    for index, node in enumerate(tree.body):
        if isinstance(node, ast.FunctionDef) and is_viper(node):
            tree.body[index] = _Function(node, constants, wraps, path).result()
    return tree


def _name(name, store=False):
    return ast.Name(name, ast.Store() if store else ast.Load())


def _call(name, *arguments):
    return ast.Call(_name(name), list(arguments), [])


def _number(value):
    return ast.Constant(value)


class _Function:
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

    def result(self):
        node = self._node
        body = []
        for argument in node.args.args:
            annotation = argument.annotation
            kind = annotation.id if isinstance(annotation, ast.Name) else "object"
            self._types[argument.arg] = kind
            self._order.append(argument.arg)
            name = argument.arg
            if kind in _SIZES:
                body.append(self._set_pointer(name, _name(name), kind))
            elif kind in ("int", "uint"):
                value = _call(f"__to_{kind}", _name(name))
                body.append(ast.Assign([_name(name, True)], value))
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            body.insert(0, first)
        else:
            first = None
        for statement in node.body[1:] if first else node.body:
            body += self._statement(statement)
        self._refuse_far_places()
        if self._result in ("int", "uint"):
            body.append(ast.Return(_number(0)))
        rest = body[1:] if first else body
        handler = ast.ExceptHandler(
            _name("Exception"),
            "error__",
            [ast.Expr(_call("__translate", _name("error__"))), ast.Raise(None, None)],
        )
        checked = ast.Try(rest or [ast.Pass()], [handler], [], [])
        arguments = [ast.arg(argument.arg) for argument in node.args.args]
        parameters = ast.arguments([], arguments, None, [], [], None, node.args.defaults)
        new = ast.FunctionDef(
            node.name, parameters, ([first] if first else []) + [checked], [], None
        )
        ast.copy_location(new, node)
        _spread(new, node.lineno)
        return new

    def _refuse_far_places(self):
        """Constant indices for which mpy-cross 1.29 makes wrong code on Xtensa."""
        in_registers = [] if self._tries else self._order[:2]
        for node, name in self._far_loads:
            if name not in in_registers:
                self._refuse(
                    node,
                    "mpy-cross loads garbage for a constant index that is not 0 to 255, "
                    f"because '{name}' is not among the first two locals",
                )
        for node in self._far_stores:
            if self._names_used:
                self._refuse(
                    node,
                    "mpy-cross breaks the function's global names by a store with a constant "
                    "index that is not 0 to 255",
                )

    # statements

    def _statement(self, node):
        self._wrap = self._carries_wrap(node)
        method = getattr(self, "_do_" + type(node).__name__.lower(), None)
        if method is None:
            self._refuse(node, f"{type(node).__name__} is not followed")
        made = method(node)
        for statement in made:
            ast.copy_location(statement, node)
        return made

    def _carries_wrap(self, node):
        header = {ast.While: "test", ast.If: "test", ast.For: "iter"}.get(type(node))
        last = getattr(node, header).end_lineno if header else node.end_lineno
        return any(line in self._wraps for line in range(node.lineno, last + 1))

    def _block(self, statements):
        made = []
        for statement in statements:
            made += self._statement(statement)
        return made

    def _do_pass(self, node):
        return [node]

    def _do_break(self, node):
        return [node]

    def _do_continue(self, node):
        return [node]

    def _do_expr(self, node):
        if isinstance(node.value, ast.Constant):
            return []
        return [ast.Expr(self._value(node.value)[0])]

    def _do_raise(self, node):
        return [ast.Raise(self._value(node.exc)[0] if node.exc else None, None)]

    def _do_assert(self, node):
        return [ast.Assert(self._value(node.test)[0], node.msg)]

    def _do_return(self, node):
        if node.value is None or (
            isinstance(node.value, ast.Constant) and node.value.value is None
        ):
            return [ast.Return(_number(0 if self._result in ("int", "uint") else None))]
        value, kind = self._value(node.value)
        if kind != self._result:
            self._refuse(node, f"return expected '{self._result}' but got '{kind}'")
        if kind in _SIZES:
            value = _call("__address", value)
        return [ast.Return(value)]

    def _do_if(self, node):
        test = self._test(node.test)
        return [ast.If(test, self._block(node.body), self._block(node.orelse))]

    def _do_while(self, node):
        test = self._test(node.test)
        return [ast.While(test, self._block(node.body), self._block(node.orelse))]

    def _do_for(self, node):
        call = node.iter
        if not isinstance(node.target, ast.Name):
            self._refuse(node, "for takes one name")
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and (call.func.id == "range")
        ):
            bounds = [self._value(argument) for argument in call.args]
            kind = bounds[0][1] if len(bounds) > 1 else "int"
            if any(bound[1] not in ("int", "uint") for bound in bounds):
                self._refuse(node, "range of objects makes objects")
            source = _call("range", *(bound[0] for bound in bounds))
        else:
            source, kind = self._value(call)[0], "object"
        self._bind(node, node.target.id, kind)
        target = _name(node.target.id, True)
        return [ast.For(target, source, self._block(node.body), self._block(node.orelse))]

    def _do_try(self, node):
        handlers = [
            ast.ExceptHandler(handler.type, handler.name, self._block(handler.body))
            for handler in node.handlers
        ]
        # an error of the checked code is no exception on the chip: it passes
        self._tries = True
        passing = ast.ExceptHandler(_name("__ViperError"), None, [ast.Raise(None, None)])
        return [
            ast.Try(
                self._block(node.body),
                [passing, *handlers],
                self._block(node.orelse),
                self._block(node.finalbody),
            )
        ]

    def _do_assign(self, node):
        if len(node.targets) != 1:
            self._refuse(node, "one target only")
        target = node.targets[0]
        if isinstance(target, ast.Tuple):
            if not isinstance(node.value, ast.Tuple) or len(target.elts) != len(node.value.elts):
                self._refuse(node, "a tuple takes as many values")
            made = []
            names = []
            for value in node.value.elts:  # all values first
                value, kind = self._value(value)
                name = self._temporary()
                if kind in _SIZES:
                    made.append(self._set_pointer(name, value, kind))
                else:
                    made.append(ast.Assign([_name(name, True)], value))
                names.append((name, kind))
            for part, (name, kind) in zip(target.elts, names, strict=True):
                made.append(self._store(part, _name(name), kind))
            for statement in made:
                ast.copy_location(statement, node)
            return made
        value, kind = self._value(node.value)
        with self._holding(node.value):
            return [self._store(target, value, kind)]

    def _do_annassign(self, node):
        self._refuse(node, "annotations of locals are not followed")

    def _do_augassign(self, node):
        target = node.target
        if isinstance(target, ast.Name):
            left = ast.copy_location(_name(target.id), target)
            value, kind = self._binary(node, left, node.op, node.value)
            return [self._store(target, value, kind)]
        if not isinstance(target, ast.Subscript):
            self._refuse(node, "only names and elements")
        base, kind = self._value(target.value)
        if kind not in _SIZES:
            self._refuse(node, "only elements of pointers")
        if not isinstance(target.value, ast.Name):
            self._refuse(node, "keep the pointer in a local")
        place = self._place(target)
        index = self._temporary()
        view = _name(target.value.id + "__v")
        keep = ast.Assign([_name(index, True)], place)
        load = ast.Subscript(view, _name(index), ast.Load())
        value, _ = self._binary_of(node, (load, "int"), node.op, self._value(node.value))
        element = ast.Subscript(view, _name(index), ast.Store())
        store = ast.Assign([element], self._cut(value, "int", _SIZES[kind]))
        return [keep, ast.copy_location(store, node)]

    def _bind(self, node, name, kind):
        known = self._types.setdefault(name, kind)
        if name not in self._order:
            self._order.append(name)
        if known != kind:
            self._refuse(node, f"local '{name}' has type '{known}' but source is '{kind}'")

    def _set_pointer(self, name, origin, kind):
        names = [_name(name + "__v", True), _name(name + "__o", True), _name(name, True)]
        if (
            isinstance(origin, ast.Name)
            and self._types.get(origin.id) == kind
            and (origin.id != name)
        ):
            parts = [_name(origin.id + "__v"), _name(origin.id + "__o"), _name(origin.id)]
            value = ast.Tuple(parts, ast.Load())
        else:
            value = _call("__pointer", origin, _number(_SIZES[kind]))
        return ast.Assign([ast.Tuple(names, ast.Store())], value)

    def _store(self, target, value, kind):
        if isinstance(target, ast.Name):
            self._bind(target, target.id, kind)
            if kind in _SIZES:
                return self._set_pointer(target.id, value, kind)
            return ast.Assign([_name(target.id, True)], value)
        if not isinstance(target, ast.Subscript):
            self._refuse(target, "only names and elements")
        base, base_kind = self._value(target.value)
        if base_kind not in _SIZES:
            index = self._value(target.slice)[0]
            return ast.Assign([ast.Subscript(base, index, ast.Store())], value)
        if kind not in ("int", "uint", "bool"):
            self._refuse(target, f"can't store '{kind}'")
        if not 0 <= (fold(target.slice, self._shadowed()) or 0) <= 255:
            self._far_stores.append(target)
        value = self._cut(value, kind, _SIZES[base_kind])
        if isinstance(target.value, ast.Name):
            view = _name(target.value.id + "__v")
            return ast.Assign([ast.Subscript(view, self._place(target), ast.Store())], value)
        index = self._value(target.slice)[0]
        return ast.Expr(_call("__store", base, _number(_SIZES[base_kind]), index, value))

    def _cut(self, value, kind, size):
        """The value as the place in memory takes it."""
        if size == 4:
            return self._signed(value) if kind == "uint" else value
        mask = _number((1 << 8 * size) - 1)
        constant = value.value if isinstance(value, ast.Constant) else None
        low, high = _STORES[size]
        if not self._wrap and (constant is None or not low <= constant <= high):
            value = self._limited(value, low, high, "__left_store")
        return ast.BinOp(value, ast.BitAnd(), mask)

    # expressions; each returns (tree, type)

    def _temporary(self):
        self._temporaries += 1
        return f"t{self._temporaries}__"

    def _test(self, node):
        return self._value(node)[0]

    def _value(self, node):
        constant = fold(node, self._shadowed())
        if constant is not None:
            kind = "int" if -_SMALL <= constant < _SMALL else "object"
            return ast.copy_location(_number(constant), node), kind
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
            return _name(node.id), self._types[node.id]
        self._names_used = True
        return _name(node.id), "object"

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
            return ast.BinOp(amount, ast.BitAnd(), _number(31))
        return self._limited(amount, 0, 31, "__left_shift")

    def _kept(self, node, value, kind):
        """`value` if it fits its register, or what the register keeps of it."""
        if self._wrap:
            return self._signed(value) if kind == "int" else self._unsigned(value)
        low, high = _LIMITS[kind]
        return self._limited(value, low, high, f"__left_{kind}", node)

    def _limited(self, value, low, high, otherwise, node=None):
        name = self._temporary()
        keep = ast.NamedExpr(_name(name, True), value)
        test = ast.Compare(_number(low), [ast.LtE(), ast.LtE()], [keep, _number(high)])
        call = _call(otherwise, _name(name))
        if node is not None:
            ast.copy_location(call, node)
        return ast.IfExp(test, _name(name), call)

    def _signed(self, value):
        half = _number(1 << 31)
        low = ast.BinOp(ast.BinOp(value, ast.Add(), half), ast.BitAnd(), _number((1 << 32) - 1))
        return ast.BinOp(low, ast.Sub(), half)

    def _unsigned(self, value):
        return ast.BinOp(value, ast.BitAnd(), _number((1 << 32) - 1))

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
        if kind not in _SIZES:
            return ast.Subscript(base, self._value(node.slice)[0], ast.Load()), "object"
        if not 0 <= (fold(node.slice, self._shadowed()) or 0) <= 255:
            self._far_loads.append((node, getattr(node.value, "id", "the pointer")))
        if isinstance(node.value, ast.Name):
            view = _name(node.value.id + "__v")
            return ast.Subscript(view, self._place(node), ast.Load()), "int"
        index = self._value(node.slice)[0]
        return _call("__load", base, _number(_SIZES[kind]), index), "int"

    def _place(self, node):
        """The index of a pointer's element in the pointer's view."""
        start = _name(node.value.id + "__o")
        index, kind = self._value(node.slice)
        if kind not in _LIMITS:
            self._refuse(node, f"can't load with '{kind}' index")
        place = ast.BinOp(start, ast.Add(), index)
        if isinstance(index, ast.Constant) and index.value >= 0:
            return place
        name = self._temporary()
        keep = ast.NamedExpr(_name(name, True), place)
        test = ast.Compare(keep, [ast.GtE()], [_number(0)])
        call = ast.copy_location(_call("__before_buffer", _name(name)), node)
        return ast.IfExp(test, _name(name), call)

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
            return _number(_as(to, constant)), to
        if to in _SIZES:
            if kind in ("uint", "bool"):
                value = _call("int", value)
            return value, to
        if kind in _SIZES:
            value = _call("__address", value)
            kind = "int"
        if kind == "bool":
            return _call("int", value), to
        if kind == to:
            return value, to
        if to == "bool":
            return _call("bool", value), to
        if kind == "object":
            return _call(f"__to_{to}", value), to
        return (self._signed(value) if to == "int" else self._unsigned(value)), to


def _as(kind, value):
    if kind == "uint":
        return value & 0xFFFFFFFF
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def _spread(node, line):
    """Give each node without a line that of the node around it."""
    for child in ast.iter_child_nodes(node):
        if "lineno" in child._attributes:
            if not hasattr(child, "lineno"):
                child.lineno = line
                child.col_offset = 0
            child.end_lineno = child.lineno
            child.end_col_offset = child.col_offset
            _spread(child, child.lineno)
        else:
            _spread(child, line)
