"""Casts to another precision."""

from gradcheck_plus.case import Spec
from gradcheck_plus.operations.conditions import shaped
from gradcheck_plus.operations.entry import Operation

_FAMILY = "casts"


def _not_bfloat16(a: Spec) -> bool:
    return a.dtype not in ("bfloat16", "float")


def _not_float32(a: Spec) -> bool:
    return a.dtype != "float32"


OPERATIONS = (
    # A copy also in a run in double precision, where it casts nothing: the result may be changed in place. Not under autocast:
    # beside values of the other low precision, torch's `cat` and `stack` raise there.
    Operation(
        "to_bfloat16", _FAMILY, "{a}.to(torch.bfloat16, copy=True)", accepts=_not_bfloat16, empty=True, autocast="no",
        elementwise=True, results=shaped(lambda shape, k: shape, "bfloat16"), traits=("low-precision",),
    ),
    # A view of a value whose dtype only the run decides, if that is float32.
    Operation(
        "to_float32", _FAMILY, "{a}.to(torch.float32)", accepts=_not_float32, empty=True, view=True, elementwise=True,
        results=shaped(lambda shape, k: shape, "float32"),
    ),
)  # fmt: skip
