"""What an entry of the fault zoo is, and the zoo itself."""

import inspect
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
        trigger: the traits that a case must have to show the fault, as in ``"several-outputs nested-output"``; where one of
            several sets will do, ``|`` stands between them.
        source: where somebody reported a fault of this kind, or what it breaks.
        meaning: what is wrong with it, in a sentence.
        contract: what the twin promises; the fault is none that this excuses.
        statements: the size of the smallest program known to show it.
        check: of a function, the named check that finds it.
        inputs: of a function, its sample call.
    """

    name: str
    kind: Kind
    faulty: Any
    twin: Any
    trigger: str
    source: str
    meaning: str
    contract: str
    statements: int = 1
    check: str = ""
    inputs: Callable[[], Any] | None = None

    @property
    def triggers(self) -> list[frozenset[str]]:
        """The sets of traits of which a case must have one whole."""
        return [frozenset(alternative.split()) for alternative in self.trigger.split("|")]

    @property
    def target(self) -> str:
        """How to import the faulty implementation."""
        return _target(self.faulty)

    @property
    def twin_target(self) -> str:
        """How to import the corrected one."""
        return _target(self.twin)

    @property
    def inputs_target(self) -> str:
        """How to import the sample call of a function; empty where there is none."""
        return _target(self.inputs) if self.inputs else ""


ZOO: Registry[Planted] = Registry("fault")


def _target(call: Any) -> str:
    """Return where an object stands: an instance does not know its own name."""
    module = sys.modules[call.__module__]
    name = next(name for name, value in vars(module).items() if value is call)
    return f"{module.__name__}:{name}"


@dataclass(frozen=True)
class Make:
    """A way to make an implementation: how it is called, the correct one, and what that promises.

    Of a function also which check finds what is wrong with it, and its sample call.
    """

    kind: Kind
    twin: Any
    contract: str
    check: str = ""
    inputs: Callable[[], Any] | None = None

    def plant(self, name: str, faulty: Any, *, trigger: str = "", source: str, statements: int = 1) -> None:
        """Enter a fault of this make into the zoo; its docstring says what is wrong."""
        meaning = " ".join((inspect.getdoc(faulty) or "").split())
        ZOO.add(
            Planted(
                name=name,
                kind=self.kind,
                faulty=faulty,
                twin=self.twin,
                trigger=trigger,
                source=source,
                meaning=meaning,
                contract=self.contract,
                statements=statements,
                check=self.check,
                inputs=self.inputs,
            )
        )
