"""Correct `torch.autograd.Function`s, as users write them; `gradcheck_plus.support` holds their source."""

from gradcheck_plus.operations.conditions import TWIN, twice
from gradcheck_plus.operations.entry import Operation

_FAMILY = "functions"
_TRAITS = ("custom-function",)

OPERATIONS = (
    Operation("swish", _FAMILY, "Swish.apply({a})", empty=True, elementwise=True, traits=_TRAITS),
    Operation(
        "power_pair", _FAMILY, "PowerPair.apply({a}, {b})", partners=(TWIN,), results=twice, empty=True,
        traits=(*_TRAITS, "several-results"),
    ),
    Operation(
        "exp_and_index", _FAMILY, "ExpAndIndex.apply({a})", saves_result=True, autocast="free", elementwise=True,
        results=lambda specs, k: ((specs[0].shape, specs[0].dtype), ((), "int64")), traits=(*_TRAITS, "integer-value"),
    ),
)  # fmt: skip
