"""The built-in subjects: correct implementations that everybody has, each with its contract."""

import importlib.util
from dataclasses import dataclass
from typing import Any

from gradcheck_plus.registry import Registry
from gradcheck_plus.subject import Kind, Planned, Subject


@dataclass(frozen=True)
class BuiltIn:
    """An entry of `gradcheck-plus list subjects`.

    Attributes:
        name: how reports name it.
        kind: how it is called.
        call: the implementation, or with `planned` what makes one; it imports what it needs when it is called.
        contract: what it promises.
        doc: what it is, in a sentence.
        planned: the field of a case's plan that `call` makes the implementation of.
        aims: traits that every case aims at, since the subject does nothing special elsewhere.
        needs: the package that it is part of, where that is not torch; it is an extra of that name.
        on: the built-in subject that it calls, whose known faults and limits are then its own; by default itself.
        compared: faults of others are tried on it too, to say whose they are.
        target: how to import it; by default the place of `call`.
    """

    name: str
    kind: Kind
    call: Any
    contract: str
    doc: str
    planned: Planned = ""
    aims: tuple[str, ...] = ()
    needs: str = ""
    on: str = ""
    compared: bool = False
    target: str = ""

    @property
    def missing(self) -> str:
        """Why it cannot be run here; empty where it can."""
        if not self.needs or importlib.util.find_spec(self.needs):
            return ""
        return f"{self.needs} is not installed; `pip install gradcheck-plus[{self.needs}]` brings it"

    @property
    def subject(self) -> Subject:
        """The subject that it is."""
        target = self.target or f"{self.call.__module__}:{self.call.__name__}"
        return Subject(self.name, self.kind, self.call, self.contract, target, self.on or self.name, self.planned, self.aims)


SUBJECTS: Registry[BuiltIn] = Registry("subject")
