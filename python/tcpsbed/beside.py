"""Modules beside a file of user code: which of them it imports, and how they are loaded.

```text
 op/p.py    import util  ─► op/util.py    as tcpsbed_beside_1.util
 arm/q.py   import util  ─► arm/util.py   as tcpsbed_beside_2.util
 either     import numpy ─► as everywhere
```

Every folder is a package of its own name, and code in it is given an `import` that looks there too, whenever it runs. No
folder comes into `sys.path`. The standard library and what is installed go first: a file takes no other module's place.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib.util
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from tcpsbed import inputs
from tcpsbed.errors import DataError

_PREFIX = "tcpsbed_beside_"
_PARSING = threading.Lock()
"""One source at a time: CPython 3.11 counts the depth of all threads' syntax trees together (CPython issue 106905)."""
_PATH = frozenset(sys.path)
"""Where Python looks before code of the user's adds to it."""
_import = builtins.__import__


def parsed(source: Path) -> ast.Module:
    """The syntax tree of a Python file; an empty one if it cannot be read as such."""
    try:
        text = inputs.text(source, "a Python file")
        with _PARSING:
            return ast.parse(text)
    except (SyntaxError, DataError, ValueError, RecursionError):
        return ast.Module([], [])


def imported(file: Path, folder: Path | None = None) -> set[Path]:
    """The modules in a folder, or beside a Python file, that it and these import according to their source text."""
    folder = folder or file.parent
    found: set[Path] = set()
    waiting = [file] if file.suffix == ".py" else []
    while waiting:
        new = _named(waiting.pop(), folder) - found - {file}
        found |= new
        waiting += new
    return found


def _named(source: Path, folder: Path) -> set[Path]:
    """The files in a folder that the imports of a module may mean."""
    names: set[tuple[Path, str]] = set()
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            names |= {(folder, alias.name) for alias in node.names if _is_beside(folder, alias.name)}
        elif isinstance(node, ast.ImportFrom):
            within = f"{node.module}." if node.module else ""
            if node.level == 0 and not _is_beside(folder, within):
                continue
            home = source.parents[node.level - 1] if 0 < node.level <= len(source.parents) else folder
            names |= {(home, f"{within}{alias.name}") for alias in node.names}
    found = set()
    for home, name in names:
        place = home.joinpath(*name.split("."))
        while place != home:
            found |= {place.with_name(f"{place.name}.py"), place / "__init__.py"}
            place = place.parent
    return {file for file in found if file.is_file()}


def _is_beside(folder: Path, name: str) -> bool:
    """Whether code in a folder means one of its own modules by a name."""
    head = name.partition(".")[0]
    there = (folder / f"{head}.py").is_file() or (folder / head).is_dir()
    return there and not _is_elsewhere(head, folder)


def _is_elsewhere(head: str, folder: Path) -> bool:
    """Whether a module is Python's own or installed.

    What lies in the folder, beside the program, or where code of the user's has `sys.path` lead is not.
    """
    if head in sys.stdlib_module_names:
        return True
    try:
        spec = importlib.util.find_spec(head)
    except (ImportError, ValueError):
        return head in sys.modules
    program = getattr(sys.modules.get("__main__"), "__file__", None) or "."
    added = [Path(place) for place in sys.path if place not in _PATH]
    near = {place.resolve() for place in (folder, Path(program).parent, Path(), *added)}
    if spec is None or spec.origin is None:
        return False
    origin = Path(spec.origin)
    home = origin.parents[1] if origin.stem == "__init__" else origin.parent
    return home.resolve() not in near


class _Folder:
    """A folder as a package, with the modules of it that were loaded."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.loaded: dict[str, tuple[Path, str]] = {}
        """Their files, and the hashes of what runs."""
        self.means: dict[str, bool] = {}
        """Whether a name is that of a module here."""
        self.package = ModuleType(name)
        self.package.__path__ = [str(path)]
        self.builtins = {**vars(builtins), "__import__": self.bring}

    def bring(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """`import` of code in the folder."""
        head = name.partition(".")[0]
        if level == 0 and head not in self.means:
            self.means[head] = _is_beside(self.path, head)
        if level or not self.means[head]:
            return _import(name, globals, locals, fromlist, level)
        found = _import(f"{self.name}.{name}", globals, locals, fromlist, 0)
        return found if fromlist else sys.modules[f"{self.name}.{head}"]

    def module(self, file: Path, call: Callable[..., None]) -> ModuleType:
        """The module of a file in the folder, loaded by `call`."""
        sys.modules[self.name] = self.package
        self.renew({file, *imported(file)})
        name = f"{self.name}.{file.stem.replace('.', ':')}"
        if name in sys.modules:
            return sys.modules[name]
        spec = importlib.util.spec_from_file_location(name, file, loader=_Loader(self, name, str(file)))
        if spec is None or spec.loader is None:
            raise ImportError(f"{file} is no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            call(spec.loader.exec_module, module)
        except BaseException:
            self.drop(name)
            raise
        return module

    def renew(self, files: set[Path]) -> None:
        """Drops the modules of those files that are not as they were loaded, and modules that import them."""
        self.means.clear()
        now = {file: _digest(file.read_bytes()) for file in files}
        old = {file for file, was in self.loaded.values() if now.get(file, was) != was}
        if not old:
            return
        for name, (file, _) in list(self.loaded.items()):
            if file in old or imported(file, self.path) & old:
                for below in [one for one in self.loaded if one == name or one.startswith(f"{name}.")]:
                    self.drop(below)

    def drop(self, name: str) -> None:
        """Forgets a module."""
        above, _, last = name.rpartition(".")
        if above in sys.modules:
            vars(sys.modules[above]).pop(last, None)
        sys.modules.pop(name, None)
        self.loaded.pop(name, None)
        _DROPPED.add(name)


_FOLDERS: dict[Path, _Folder] = {}
_NAMING = threading.Lock()
"""One folder at a time is given its number."""
_DROPPED: set[str] = set()


class _Loader(SourceFileLoader):
    """Loads a module of a folder from its source, never from bytes that Python kept of an earlier one."""

    def __init__(self, folder: _Folder, name: str, path: str) -> None:
        super().__init__(name, path)
        self._folder = folder

    def get_code(self, fullname: str) -> CodeType | None:
        """What runs is what is noted."""
        source = self.get_data(self.path)
        self._folder.loaded[fullname] = Path(self.path), _digest(source)
        _DROPPED.discard(fullname)
        code: CodeType = self.source_to_code(source, self.path)
        return code

    def exec_module(self, module: ModuleType) -> None:
        """With the `import` of the folder."""
        vars(module)["__builtins__"] = self._folder.builtins
        super().exec_module(module)


class _Finder:
    """Finds modules of folders by their whole names."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """As the machinery of `import` asks."""
        package = name.partition(".")[0]
        folder = next((one for one in list(_FOLDERS.values()) if one.name == package), None)
        if folder is None:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(folder, name, spec.loader.path)
        return spec


sys.meta_path.insert(0, _Finder)


def module(path: Path, call: Callable[..., None]) -> ModuleType:
    """The module of a file, which may import others beside it; loaded anew, by `call`, if one of them was changed."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist")
    path = path.resolve()
    with _NAMING:
        if path.parent not in _FOLDERS:
            _FOLDERS[path.parent] = _Folder(path.parent, f"{_PREFIX}{len(_FOLDERS) + 1}")
    return _FOLDERS[path.parent].module(path, call)


def is_outdated(name: str) -> bool:
    """Whether a module was taken away because its file was changed, or because it failed."""
    return name in _DROPPED


def _digest(source: bytes) -> str:
    return hashlib.sha256(source).hexdigest()
