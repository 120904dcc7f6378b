"""Control flow that depends on values, and values that no gradient flows through."""

from gradcheck_plus.operations.conditions import TWIN, P, always, filled_first, filled_last, shaped
from gradcheck_plus.operations.entry import Operation
from gradcheck_plus.operations.tables import functions, layers

_FAMILY = "control"

OPERATIONS = (
    Operation(
        "branch", _FAMILY, "(-{a} if float({a}.detach().sum()) > 0 else {a})", view=True, empty=True, elementwise=True,
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
    *functions(
        _FAMILY, {
            "shrunk": "shrunk({a}) * 1",
        },
        traits=("control-flow",), elementwise=True, empty=True,
    ),
    *functions(
        _FAMILY, {
            "alternating": "alternating({a})",
        },
        traits=("control-flow",), accepts=filled_first, elementwise=True, empty=True,
    ),
    *functions(
        _FAMILY, {
            "recomputed_tanh": "recomputed(torch.tanh, {a})",
            "recomputed_twice": "recomputed(recomputed, torch.sin, {a})",
        },
        traits=("inner-checkpoint",), elementwise=True, empty=True,
    ),
    *functions(
        _FAMILY, {
            "recomputed_dropout": "recomputed(F.dropout, {a}, {p}, self.training)",
        },
        traits=("inner-checkpoint", "dropout"), attributes=P, elementwise=True, empty=True, view=True,
    ),
    *functions(
        _FAMILY, {
            "recomputed_product": "recomputed(torch.mul, {a}, {b})",
        },
        traits=("inner-checkpoint",), partners=(TWIN,), empty=True,
    ),
    *layers(
        _FAMILY, {
            "recomputed_layers": "nn.Sequential(nn.Linear({a.last}, 3), nn.Tanh(), nn.Linear(3, {a.last}))",
        },
        traits=("inner-checkpoint",), accepts=filled_last, line="recomputed({module}, {a})", autocast="low", empty=True,
        inner_view=always, trainable=True,
    ),
)  # fmt: skip
