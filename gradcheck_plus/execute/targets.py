"""`TARGET`s: ``package.module:attribute`` or ``path/to/file.py:attribute``; and live objects that have no such name."""

import functools
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.subject import PAIR

_LIVE = "live:"
_FORM = "Write `package.module:attribute` or `path/to/file.py:attribute`."
#: What a user's code may raise where it is called: also the exit of a script that was not meant to be imported.
_FAILURES = (Exception, SystemExit)


#: Objects that were handed over as they are, by the names that stand for them in this process.
_live: dict[str, Any] = {}


def named(value: Any) -> str:
    """Return a target for a live object: its import path if it has one, else a name that only this process knows.

    Example:
        >>> named(named)
        'gradcheck_plus.execute.targets:named'
        >>> load(named(named)) is named
        True
    """
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "<")
    if module and module != "__main__" and "<" not in name:
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is value:
            return f"{module}:{name}"
    target = f"{_LIVE}{len(_live)}"
    _live[target] = value
    return target


def importable(target: str) -> bool:
    """Can another process import this target?"""
    return bool(target) and not any(part.startswith(_LIVE) for part in target.split(PAIR))


def load(target: str) -> Any:
    """Return what a target names.

    The current directory is on the path while it is imported, as with ``python -m``. Of ``A + B`` it is the pair of what
    each of the two names.

    Raises:
        InvalidArgument: the form is wrong, or the module or the attribute cannot be found or imported.
    """
    if PAIR in target:
        return tuple(map(load, target.split(PAIR)))
    if target.startswith(_LIVE):
        if target not in _live:
            raise InvalidArgument(f"`target`={target!r} was an object of another process. {_FORM}")
        return _live[target]
    return _imported(target)


@functools.cache
def _imported(target: str) -> Any:
    place, separator, attribute = target.rpartition(":")
    if not separator or not place or not attribute:
        raise InvalidArgument(f"`target`={target!r} has no attribute. {_FORM}")
    value: Any = _file(target, Path(place)) if place.endswith(".py") else _module(target, place)
    for part in attribute.split("."):
        value = _attribute(target, place, value, part)
    return value


def _attribute(target: str, place: str, value: Any, name: str) -> Any:
    try:
        return getattr(value, name)
    except AttributeError as error:
        known = ", ".join(sorted(n for n in getattr(value, "__dict__", ()) if not n.startswith("_"))[:12]) or "none"
        raise InvalidArgument(f"`target`={target!r}: {place} has no attribute {name!r}. It has: {known}.") from error
    except _FAILURES as error:
        raise InvalidArgument(
            f"`target`={target!r}: asking {place} for {name!r} failed: {_said(error)}. Write an attribute that can be had."
        ) from error


def _module(target: str, name: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except _FAILURES as error:
        raise InvalidArgument(f"`target`={target!r}: importing {name!r} failed: {_said(error)}. {_FORM}") from error


def _file(target: str, path: Path) -> ModuleType:
    if not path.is_file():
        raise InvalidArgument(f"`target`={target!r}: there is no file {str(path)!r}. {_FORM}")
    try:
        return _run(path.resolve(), path.stat().st_mtime_ns)
    except _FAILURES as error:
        raise InvalidArgument(
            f"`target`={target!r}: running {str(path)!r} failed: {_said(error)}. Write a file that can be imported."
        ) from error


@functools.cache
def _run(path: Path, _changed: int) -> ModuleType:
    """Run a file once, however many targets are in it; once more if it has changed."""
    name = f"gradcheck_plus_target_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


def _said(error: BaseException) -> str:
    first = str(error).strip().splitlines()
    return f"{type(error).__name__}: {first[0] if first else 'no message'}"
