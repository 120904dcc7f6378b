"""Correct `torch.autograd.Function`s, as users write them; `gradcheck_plus.support` holds their source."""

from gradcheck_plus.case import Spec
from gradcheck_plus.operations.conditions import TWIN, at_least, filled_last, shaped, twice
from gradcheck_plus.operations.entry import Operation, Partner
from gradcheck_plus.operations.tables import functions

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
    *functions(
        _FAMILY, {
            "shift_in_place_": "ShiftInPlace.apply({a})",
        },
        in_place=True, traits=("in-place", "custom-function"), elementwise=True, empty=True,
    ),
    *functions(
        _FAMILY, {
            "reversed": "Reversed.apply({a})",
        },
        traits=("custom-function", "view"), accepts=at_least(1), results=shaped(lambda shape, k: shape[::-1]),
        empty=True, strided=True, view=True,
    ),
    *functions(
        _FAMILY, {
            "sum_and_difference": "SumAndDifference.apply({a}, {b})",
        },
        traits=("custom-function", "several-results"), partners=(TWIN,), results=twice, empty=True,
    ),
    *functions(
        _FAMILY, {
            "sorted_with_ranks": "SortedWithRanks.apply({a})",
        },
        traits=("custom-function", "several-results", "integer-value"), accepts=filled_last, results=lambda specs,
        k: ((specs[0].shape, specs[0].dtype), (specs[0].shape, "int64"), (specs[0].shape, specs[0].dtype)), empty=True,
    ),
)  # fmt: skip
