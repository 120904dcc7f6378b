"""Whom a case is run under."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["checkpoint", "stage-backward", "function"]
#: The kinds that modules are run under.
KINDS: tuple[Kind, ...] = ("checkpoint", "stage-backward")


@dataclass(frozen=True)
class Subject:
    """An implementation of a VJP: the one under test, or plain autograd.

    Attributes:
        name: how reports name it.
        kind: how it is called.
        call: the implementation, with the signature of its kind.
        contract: the name of what it promises.
        target: how to import it, for repros; empty for a live object.
        builds_on: the built-in subject that it calls, whose known faults and limits are then its own.
    """

    name: str
    kind: Kind
    call: Callable[..., Any]
    contract: str
    target: str = ""
    builds_on: str = ""
