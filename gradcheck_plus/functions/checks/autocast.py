"""Under autocast the forward runs in another dtype; the backward has to know."""

from gradcheck_plus.functions.checks import values
from gradcheck_plus.functions.checks.check import Check

CHECK = Check(
    "autocast",
    "gradients under autocast are those of the reference, in the dtypes of the inputs",
    values.check,
    forces="under-autocast",
    source="pytorch/pytorch#87979, #88029",
    rank=3,
)
