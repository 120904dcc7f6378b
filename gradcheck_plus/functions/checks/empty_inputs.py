"""An input without elements is an input: an expert without tokens, the last batch."""

from gradcheck_plus.functions.checks import values
from gradcheck_plus.functions.checks.check import Check

CHECK = Check(
    "empty-inputs",
    "it takes inputs of size 0, forward and backward",
    values.check,
    forces="size-zero",
    source="pytorch/pytorch#50743",
    rank=2,
    often=2,
)
