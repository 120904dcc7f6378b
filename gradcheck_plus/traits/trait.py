"""What an entry of the trait table is, and the table itself."""

from collections.abc import Callable
from dataclasses import dataclass

from gradcheck_plus.registry import Registry
from gradcheck_plus.subject import KINDS, Kind
from gradcheck_plus.traits.facts import Facts

FUNCTION: tuple[Kind, ...] = ("checkpoint",)
WRAPPER: tuple[Kind, ...] = ("wrapper",)
CHECKPOINT: tuple[Kind, ...] = FUNCTION + WRAPPER
STAGE: tuple[Kind, ...] = ("stage-backward",)
SPLIT: tuple[Kind, ...] = ("split-backward",)
CALL: tuple[Kind, ...] = ("function",)

#: Where the limits of recomputing are written down.
CHECKPOINT_DOCS = "torch.utils.checkpoint documentation"


@dataclass(frozen=True)
class Trait:
    """One property of a case.

    Attributes:
        name: its public name.
        meaning: one sentence for ``gradcheck-plus list traits``.
        when: does the case have it?
        source: a public report or document about an implementation that gets it wrong; empty where none is known.
        kinds: the kinds of subject it means something to.
        drawn: strategies can aim at it.
        needs: traits that are switched on with it.
        clashes: traits that cannot be aimed at together with it.
        inexact: a correct subject need not give equal bits.
        quiet: it makes gradients zero or absent on purpose.
    """

    name: str
    meaning: str
    when: Callable[[Facts], bool]
    source: str = ""
    kinds: tuple[Kind, ...] = KINDS
    drawn: bool = True
    needs: tuple[str, ...] = ()
    clashes: tuple[str, ...] = ()
    inexact: bool = False
    quiet: bool = False


TRAITS: Registry[Trait] = Registry("trait")
