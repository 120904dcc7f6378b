"""Correct `torch.autograd.Function`s, as users write them; `gradcheck_plus.support` holds their source."""

from gradcheck_plus.case import Spec
from gradcheck_plus.operations.conditions import TWIN, twice
from gradcheck_plus.operations.entry import Operation, Partner

_FAMILY = "functions"
_TRAITS = ("custom-function",)
_SEVERAL = (*_TRAITS, "several-results")


def _row(a: Spec, b: Spec) -> bool:
    return b.shape == a.shape[-1:] and b.dtype == a.dtype != "float"


OPERATIONS = (
    Operation("swish", _FAMILY, "Swish.apply({a})", empty=True, elementwise=True, traits=_TRAITS),
    Operation(
        "power_pair", _FAMILY, "PowerPair.apply({a}, {b})", partners=(TWIN,), results=twice, empty=True, traits=_SEVERAL,
    ),
    Operation(
        "scale_and_shift", _FAMILY, "ScaleAndShift.apply({a}, {b})", partners=(Partner(_row, fresh=lambda a: a.shape[-1:]),),
        results=twice, empty=True, traits=_SEVERAL,
    ),
    Operation(
        "sin_and_cos", _FAMILY, "SinAndCos.apply({a})", results=twice, empty=True, saves_result=True,
        traits=_SEVERAL,
    ),
    Operation(
        "exp_and_index", _FAMILY, "ExpAndIndex.apply({a})", saves_result=True, autocast="free", elementwise=True,
        results=lambda specs, k: ((specs[0].shape, specs[0].dtype), ((), "int64")), traits=(*_TRAITS, "integer-value"),
    ),
)  # fmt: skip
