"""What a recording says, as data; its JSON is these structs."""

import math
from typing import Literal

import msgspec


class Gradient(msgspec.Struct, frozen=True):
    """One gradient in figures.

    Attributes:
        norm: the Euclidean norm; None where it is not a finite number.
        nonfinite: how many elements are infinite or NaN.
    """

    shape: tuple[int, ...]
    dtype: str
    norm: float | None
    nonfinite: int

    def __str__(self) -> str:
        """Write it as in a table.

        Example:
            >>> print(Gradient((2, 3), "float32", 1.5, 0))
            float32[2, 3] |1.5|
            >>> print(Gradient((2, 3), "float32", None, 1))
            float32[2, 3] (1 of 6 not finite)
        """
        size = f"|{self.norm:.4g}|" if self.norm is not None else f"({self.nonfinite} of {math.prod(self.shape)} not finite)"
        return f"{self.dtype}{list(self.shape)} {size}"


Gradients = tuple[Gradient | None, ...]


class RecordedNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node, as data. The fields are those of `Node`.

    Attributes:
        leads_to: for each gradient that it returns, the index of the node that receives it.
        path: the module whose forward made it.
        backward: the number of the backward that it ran in.
        parent: the index of the node in whose backward that one was started.
    """

    index: int
    name: str
    kind: Literal["torch", "function", "leaf"]
    received: Gradients
    returned: Gradients
    leaf: str | None
    operation: str | None
    path: str | None
    source: str | None
    saved: dict[str, str]
    hooks: tuple[str, ...]
    leads_to: tuple[int | None, ...]
    backward: int
    parent: int | None


class RecordingData(msgspec.Struct, frozen=True, kw_only=True):
    """A recording, as data.

    Attributes:
        torch: the version that it was made with.
        rank: of this process in `torch.distributed`, None where that is not initialised.
    """

    torch: str
    rank: int | None
    nodes: tuple[RecordedNode, ...]


class NodeCheck(msgspec.Struct, frozen=True):
    """What the local check says of one node.

    Attributes:
        node: the name of the node.
        verdict: is its rule the derivative of its forward (``match``), another one (``fault``), or could it not be told?
        reason: which gradient differs and by how much, or why it could not be told.
        operation, source: what made the node, and where.
    """

    node: str
    verdict: Literal["match", "fault", "inconclusive"]
    reason: str
    operation: str | None = None
    source: str | None = None
