"""Control flow that depends on values, and values that no gradient flows through."""

from gradcheck_plus.operations.conditions import filled_last, shaped
from gradcheck_plus.operations.entry import Operation

_FAMILY = "control"

OPERATIONS = (
    Operation(
        "branch", _FAMILY, "({a} if float({a}.detach().sum()) > 0 else -{a})", view=True, empty=True, elementwise=True,
        traits=("control-flow",),
    ),
    Operation("detach", _FAMILY, "{a}.detach()", differentiable=False, view=True, empty=True, traits=("detached-value",)),
    Operation(
        "statistics", _FAMILY, "{a}.detach().mean()", differentiable=False, results=shaped(lambda shape, k: ()),
        traits=("detached-value",),
    ),
    Operation(
        "sign_mask", _FAMILY, "({a} > 0)", differentiable=False, results=shaped(lambda shape, k: shape, "bool"),
        traits=("integer-value",), empty=True,
    ),
    Operation(
        "argmax", _FAMILY, "{a}.argmax(-1)", differentiable=False, accepts=filled_last, empty=True,
        traits=("integer-value",), results=shaped(lambda shape, k: shape[:-1], "int64"),
    ),
)  # fmt: skip
