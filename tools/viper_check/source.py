"""What the source says: where `# wrap` stands, what is constant, which functions are viper."""

import ast
import re
import tokenize

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
