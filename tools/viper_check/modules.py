"""Load firmware modules with their viper functions replaced, apart from this process's modules."""

import ast
import builtins
import importlib.util
import pathlib
import types

from .faults import ViperError

_SHIMS = pathlib.Path(__file__).resolve().parent.parent.parent / "host_sim" / "cpython"


class Modules:
    """Modules from `directories`; what is not there comes from this process.

    `rewrite(tree, path, module)` changes a module's syntax tree before it runs. `memory` answers
    for `uctypes`: `address(buffer)` and `find(address)`, which gives (bytes, index in them).
    `names` are seen by all modules like builtins.
    """

    def __init__(self, directories, rewrite, memory, names):
        self._directories = [pathlib.Path(directory) for directory in directories] + [_SHIMS]
        self._rewrite = rewrite
        self._memory = memory
        uctypes = types.ModuleType("uctypes")
        uctypes.addressof = memory.address
        uctypes.bytearray_at = self._bytearray_at
        self._modules = {"uctypes": uctypes}
        self._builtins = {**vars(builtins), **names, "__import__": self._import}

    def _bytearray_at(self, address, size):
        found = self._memory.find(address)
        if found is None:
            raise ViperError(f"no buffer at {address:#x}")
        return found[0][found[1] : found[1] + size]

    def load(self, name: str) -> types.ModuleType:
        """Return the module `name` (with dots for a package), loaded on the first call."""
        module = self._find(name)
        if module is None:
            raise ModuleNotFoundError(f"no {name} in {[str(d) for d in self._directories]}")
        return module

    def _find(self, name):
        if name in self._modules:
            return self._modules[name]
        parent, _, last = name.rpartition(".")
        places = self._directories
        if parent:
            package = self._find(parent)
            if package is None:
                return None
            places = [pathlib.Path(place) for place in getattr(package, "__path__", ())]
        for place in places:
            for path in (place / last / "__init__.py", place / f"{last}.py"):
                if path.exists():
                    module = self._run(name, path)
                    if parent:
                        setattr(package, last, module)
                    return module
            if (place / last).is_dir():  # a package without __init__.py
                module = self._modules[name] = types.ModuleType(name)
                module.__path__ = [str(place / last)]
                return module
        return None

    def _run(self, name, path):
        module = types.ModuleType(name)
        module.__file__ = str(path)
        module.__dict__["__builtins__"] = self._builtins
        module.__package__ = name.rpartition(".")[0]
        if path.name == "__init__.py":
            module.__path__ = [str(path.parent)]
            module.__package__ = name
        tree = self._rewrite(ast.parse(path.read_text()), path, module)
        self._modules[name] = module
        try:
            exec(compile(tree, str(path), "exec"), module.__dict__)
        except BaseException:
            del self._modules[name]
            raise
        return module

    def _import(self, name, globals=None, locals=None, fromlist=(), level=0):
        if level:
            name = importlib.util.resolve_name("." * level + name, globals["__package__"])
        module = self._find(name)
        if module is None:
            return importlib.__import__(name, globals, locals, fromlist, 0)
        if not fromlist:
            return self._modules[name.partition(".")[0]]
        for part in fromlist:
            if not hasattr(module, part) and hasattr(module, "__path__"):
                self._find(f"{name}.{part}")
        return module
