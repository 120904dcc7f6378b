"""What the oracle says of one case: mismatches, with their figures."""

from typing import Literal

import msgspec

MismatchKind = Literal[
    "value", "presence", "dtype", "shape", "device", "structure", "requires-grad", "alias", "version", "state", "firings",
    "raises", "not-raised", "not-repeatable", "hang", "crash",
]  # fmt: skip
Rule = Literal["bitwise", "budget", "nudged"]

#: Whose thing it is. `primal` and `parameter` are gradients; `input` is the value of an input after the run; `module` is what
#: a model says of its parts.
Role = Literal[
    "output", "primal", "parameter", "buffer", "input", "leftover", "rng", "mode", "hook", "forward-hook", "module", "call",
]  # fmt: skip


class Figures(msgspec.Struct, frozen=True):
    """How far two tensors are apart, and by which rule that was judged.

    Attributes:
        max_abs: the largest difference of two elements; None where it is not finite, as the two others then.
        max_rel: the same, over the largest element of the reference.
        max_ulp: the same, in units in the last place of the reference's largest element.
        allowed: the largest error that the rule would have let pass; 0 where equal bits are due.
        rule: ``bitwise``; ``budget`` against a float64 truth; ``nudged`` where there is none.
    """

    max_abs: float | None
    max_rel: float | None
    max_ulp: float | None
    allowed: float
    rule: Rule


class Mismatch(msgspec.Struct, frozen=True):
    """One thing that the subject left different.

    `leaf` is its path as code. For an exception, `error` is its type, part of what kind of fault it is. What is found in a
    function says in a sentence of its own what is wrong, in `said`, and in `rank` how soon it is explained; its role is the
    name of
    the check.
    """

    kind: MismatchKind
    role: str
    leaf: str
    expected: str
    got: str
    error: str = ""
    figures: Figures | None = None
    said: str = ""
    rank: int | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """What one search settles on: kind, role and, for an exception, its type."""
        return (self.kind, self.role, self.error)

    @property
    def severity(self) -> int:
        """How bad it is, 0 for the worst: wrong or lost gradients, exceptions, zeros for `None`, side effects."""
        if self.rank is not None:
            return self.rank
        if self.kind in ("alias", "version"):
            return 5
        if self.role in ("primal", "parameter"):
            return 2 if self.kind == "presence" and self.expected == "None" else 0
        return {"call": 1, "output": 2, "buffer": 3, "rng": 3}.get(self.role, 4)

    @property
    def message(self) -> str:
        """One line for a report.

        Example:
            >>> Mismatch("presence", "parameter", "params['w'].grad", "a tensor", "None").message
            "params['w'].grad: expected a tensor, got None"
        """
        if self.said:
            return self.said
        text = f"{self.leaf}: expected {self.expected}, got {self.got}"
        if self.figures is None:
            return text
        f = self.figures
        allowed = "equal bits are due" if f.rule == "bitwise" else f"{f.allowed:.3g} allowed by the {f.rule} rule"
        if f.max_abs is None or f.max_ulp is None:
            return f"{text} (the difference is not finite; {allowed})"
        return f"{text} (|difference| {f.max_abs:.3g}, {f.max_ulp:.3g} ULP; {allowed})"
