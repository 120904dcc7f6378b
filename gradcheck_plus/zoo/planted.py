"""What an entry of the fault zoo is, and the zoo itself."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradcheck_plus.registry import Registry
from gradcheck_plus.subject import Kind


@dataclass(frozen=True, kw_only=True)
class Planted:
    """One planted fault, and its corrected form.

    Attributes:
        name: names it in reports of the self test.
        kind: how it is called.
        faulty: the implementation that the tool must find; a name of the module that defines it.
        twin: its corrected form, on which the tool must stay silent; a name of its module too.
        trigger: the traits that every case has that shows the fault.
        source: where somebody reported a fault of this kind, or what it breaks.
        meaning: what is wrong with it, in a sentence.
        contract: what the twin promises; the fault is none that this excuses.
        statements: the size of the smallest program known to show it.
    """

    name: str
    kind: Kind
    faulty: Callable[..., Any]
    twin: Callable[..., Any]
    trigger: tuple[str, ...]
    source: str
    meaning: str
    contract: str
    statements: int = 1

    @property
    def target(self) -> str:
        """How to import the faulty implementation."""
        return _target(self.faulty)

    @property
    def twin_target(self) -> str:
        """How to import the corrected one."""
        return _target(self.twin)


ZOO: Registry[Planted] = Registry("fault")


def _target(call: Callable[..., Any]) -> str:
    """Return where an object stands: an instance does not know its own name."""
    module = sys.modules[call.__module__]
    name = next(name for name, value in vars(module).items() if value is call)
    return f"{module.__name__}:{name}"
