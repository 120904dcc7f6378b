"""Where two runs part first, as data."""

from typing import Literal

import msgspec

#: What differs there first, while everything before it is equal.
DivergenceKind = Literal[
    "forward-differs", "recompute-differs", "gradient-missing", "incoming-differs", "rule-differs", "accumulation-differs",
    "result-differs", "raises", "not-seen",
]  # fmt: skip


Direction = Literal["forward", "backward"]


class Divergence(msgspec.Struct, frozen=True):
    """The first place at which two runs part.

    Attributes:
        node: the autograd node, by the name that torch gives it, or the operation, where it is a forward that differs.
        source_line: the text of the line that made it, empty where it is not known.
        direction: does it show in a forward, a recomputed one among them, or in a backward?
        kind: what differs: a forward or one that is recomputed; in the backward, a gradient that never comes
            (``gradient-missing``), one that was handed over wrong by what is not in the reference, such as a checkpoint's own
            Function or a stage's backward (``incoming-differs``), what a node returns for the same gradients
            (``rule-differs``; without a reference, from what differences give), how gradients are added up
            (``accumulation-differs``), or, where nothing else shows, what `torch.autograd.grad` returned
            (``result-differs``). ``raises``: one of the two raised there. ``not-seen``: all operations and nodes agree, and
            what differs was done to a tensor after them.
        source: the place of the line, as ``path:line``; empty where it is not known.
        message: all of this in a sentence, with the figures.
    """

    node: str
    source_line: str
    direction: Direction
    kind: DivergenceKind
    source: str
    message: str

    def __str__(self) -> str:
        return self.message
