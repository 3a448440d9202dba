"""Rewrite viper functions into Python that checks each operation, load and store.

Types are those of viper's compiler: a local has the type of what is first stored to it, in the
order of the source. A pointer `p` becomes three locals: `p` (the buffer or address it was made
of), `p__v` (a view of elements) and `p__o` (the index of its first element there).
"""

import ast

from .expressions import SIZES, STORES, Expressions, call_node, name_node, number_node
from .source import fold, is_viper, module_constants, wrap_lines


def transform_module(tree, path):
    """Replace the viper functions of a module's tree, in place."""
    constants = module_constants(tree)
    wraps = wrap_lines(path)
    for index, node in enumerate(tree.body):
        if isinstance(node, ast.FunctionDef) and is_viper(node):
            tree.body[index] = _Function(node, constants, wraps, path).result()
    return tree


class _Function(Expressions):
    def result(self):
        node = self._node
        body = []
        for argument in node.args.args:
            annotation = argument.annotation
            kind = annotation.id if isinstance(annotation, ast.Name) else "object"
            self._types[argument.arg] = kind
            self._order.append(argument.arg)
            name = argument.arg
            if kind in SIZES:
                body.append(self._set_pointer(name, name_node(name), kind))
            elif kind in ("int", "uint"):
                value = call_node(f"__to_{kind}", name_node(name))
                body.append(ast.Assign([name_node(name, True)], value))
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            body.insert(0, first)
        else:
            first = None
        for statement in node.body[1:] if first else node.body:
            body += self._statement(statement)
        self._refuse_far_places()
        if self._result in ("int", "uint"):
            body.append(ast.Return(number_node(0)))
        rest = body[1:] if first else body
        handler = ast.ExceptHandler(
            name_node("Exception"),
            "error__",
            [ast.Expr(call_node("__translate", name_node("error__"))), ast.Raise(None, None)],
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
            return [ast.Return(number_node(0 if self._result in ("int", "uint") else None))]
        value, kind = self._value(node.value)
        if kind != self._result:
            self._refuse(node, f"return expected '{self._result}' but got '{kind}'")
        if kind in SIZES:
            value = call_node("__address", value)
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
            source = call_node("range", *(bound[0] for bound in bounds))
        else:
            source, kind = self._value(call)[0], "object"
        self._bind(node, node.target.id, kind)
        target = name_node(node.target.id, True)
        return [ast.For(target, source, self._block(node.body), self._block(node.orelse))]

    def _do_try(self, node):
        handlers = [
            ast.ExceptHandler(handler.type, handler.name, self._block(handler.body))
            for handler in node.handlers
        ]
        # an error of the checked code is no exception on the chip: it passes
        self._tries = True
        passing = ast.ExceptHandler(name_node("__ViperError"), None, [ast.Raise(None, None)])
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
                if kind in SIZES:
                    made.append(self._set_pointer(name, value, kind))
                else:
                    made.append(ast.Assign([name_node(name, True)], value))
                names.append((name, kind))
            for part, (name, kind) in zip(target.elts, names, strict=True):
                made.append(self._store(part, name_node(name), kind))
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
            left = ast.copy_location(name_node(target.id), target)
            value, kind = self._binary(node, left, node.op, node.value)
            return [self._store(target, value, kind)]
        if not isinstance(target, ast.Subscript):
            self._refuse(node, "only names and elements")
        base, kind = self._value(target.value)
        if kind not in SIZES:
            self._refuse(node, "only elements of pointers")
        if not isinstance(target.value, ast.Name):
            self._refuse(node, "keep the pointer in a local")
        place = self._place(target)
        index = self._temporary()
        view = name_node(target.value.id + "__v")
        keep = ast.Assign([name_node(index, True)], place)
        load = ast.Subscript(view, name_node(index), ast.Load())
        value, _ = self._binary_of(node, (load, "int"), node.op, self._value(node.value))
        element = ast.Subscript(view, name_node(index), ast.Store())
        store = ast.Assign([element], self._cut(value, "int", SIZES[kind]))
        return [keep, ast.copy_location(store, node)]

    def _bind(self, node, name, kind):
        known = self._types.setdefault(name, kind)
        if name not in self._order:
            self._order.append(name)
        if known != kind:
            self._refuse(node, f"local '{name}' has type '{known}' but source is '{kind}'")

    def _set_pointer(self, name, origin, kind):
        names = [
            name_node(name + "__v", True),
            name_node(name + "__o", True),
            name_node(name, True),
        ]
        if (
            isinstance(origin, ast.Name)
            and self._types.get(origin.id) == kind
            and (origin.id != name)
        ):
            parts = [
                name_node(origin.id + "__v"),
                name_node(origin.id + "__o"),
                name_node(origin.id),
            ]
            value = ast.Tuple(parts, ast.Load())
        else:
            value = call_node("__pointer", origin, number_node(SIZES[kind]))
        return ast.Assign([ast.Tuple(names, ast.Store())], value)

    def _store(self, target, value, kind):
        if isinstance(target, ast.Name):
            self._bind(target, target.id, kind)
            if kind in SIZES:
                return self._set_pointer(target.id, value, kind)
            return ast.Assign([name_node(target.id, True)], value)
        if not isinstance(target, ast.Subscript):
            self._refuse(target, "only names and elements")
        base, base_kind = self._value(target.value)
        if base_kind not in SIZES:
            index = self._value(target.slice)[0]
            return ast.Assign([ast.Subscript(base, index, ast.Store())], value)
        if kind not in ("int", "uint", "bool"):
            self._refuse(target, f"can't store '{kind}'")
        if not 0 <= (fold(target.slice, self._shadowed()) or 0) <= 255:
            self._far_stores.append(target)
        value = self._cut(value, kind, SIZES[base_kind])
        if isinstance(target.value, ast.Name):
            view = name_node(target.value.id + "__v")
            return ast.Assign([ast.Subscript(view, self._place(target), ast.Store())], value)
        index = self._value(target.slice)[0]
        return ast.Expr(call_node("__store", base, number_node(SIZES[base_kind]), index, value))

    def _cut(self, value, kind, size):
        """The value as the place in memory takes it."""
        if size == 4:
            return self._signed(value) if kind == "uint" else value
        mask = number_node((1 << 8 * size) - 1)
        constant = value.value if isinstance(value, ast.Constant) else None
        low, high = STORES[size]
        if not self._wrap and (constant is None or not low <= constant <= high):
            value = self._limited(value, low, high, "__left_store")
        return ast.BinOp(value, ast.BitAnd(), mask)


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
