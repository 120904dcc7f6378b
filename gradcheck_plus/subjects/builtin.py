"""The built-in subjects: correct implementations that everybody has, each with its contract."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradcheck_plus.registry import Registry
from gradcheck_plus.subject import Kind, Subject


@dataclass(frozen=True)
class BuiltIn:
    """An entry of `gradcheck-plus list subjects`.

    Attributes:
        name: how reports name it.
        kind: how it is called.
        call: the implementation; it imports what it needs when it is called.
        contract: what it promises.
        doc: what it is, in a sentence.
    """

    name: str
    kind: Kind
    call: Callable[..., Any]
    contract: str
    doc: str

    @property
    def subject(self) -> Subject:
        """The subject that it is."""
        target = f"{self.call.__module__}:{self.call.__name__}"
        return Subject(self.name, self.kind, self.call, self.contract, target=target, builds_on=self.name)


SUBJECTS: Registry[BuiltIn] = Registry("subject")
