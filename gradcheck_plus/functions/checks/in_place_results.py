"""A result may be changed in place by whoever receives it."""

from gradcheck_plus.functions.checks import values
from gradcheck_plus.functions.checks.check import Check

CHECK = Check(
    "in-place-results",
    "its result can be changed in place, as that of other operations",
    values.check,
    forces="result-changed-in-place",
    source="pytorch/pytorch#26546, #31258, #36383",
    rank=2,
    often=2,
)
