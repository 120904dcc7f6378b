"""Pointwise functions of one and of several tensors. None has an infinite slope: a NaN would hide what follows it."""

from gradcheck_plus.case import Spec
from gradcheck_plus.operations.conditions import FULL, INTO, ROW, TWIN, even_last, one_of, shaped, together
from gradcheck_plus.operations.entry import Autocast, Operation, Partner

_FAMILY = "pointwise"


def _unary(
    name: str,
    line: str,
    *,
    saves_result: bool = False,
    setup: str = "",
    autocast: Autocast = "keep",
    elementwise: bool = True,
) -> Operation:
    return Operation(
        name, _FAMILY, line, setup=setup, empty=True, saves_result=saves_result, autocast=autocast, elementwise=elementwise
    )  # fmt: skip


def _binary(name: str, line: str, *partners: Partner, saves_result: bool = False, autocast: Autocast = "keep") -> Operation:
    return Operation(
        name, _FAMILY, line, partners=partners, results=together, empty=True, saves_result=saves_result, autocast=autocast
    )  # fmt: skip


def _python_number(_: Spec, b: Spec) -> bool:
    return b.dtype == "python"


OPERATIONS = (
    # `sin` stands first: drawing shrinks towards it.
    _unary("sin", "torch.sin({a})"),
    _unary("cos", "torch.cos({a})"),
    _unary("atan", "torch.atan({a})"),
    _unary("erf", "torch.erf({a})"),
    _unary("tanh", "torch.tanh({a})", saves_result=True),
    _unary("sigmoid", "torch.sigmoid({a})", saves_result=True),
    _unary("exp", "torch.exp({a} * 0.25)", saves_result=True, autocast="free"),
    _unary("square", "torch.square({a})", autocast="free"),
    _unary("sqrt", "torch.sqrt({a}.abs() + 0.5)", saves_result=True),
    _unary("reciprocal", "torch.reciprocal({a}.abs() + 1)", saves_result=True, autocast="free"),
    _unary("neg", "-{a}"),
    _unary("abs", "torch.abs({a})"),
    _unary("log1p", "torch.log1p({a}.abs())", autocast="free"),
    _unary("relu", "F.relu({a})", saves_result=True),
    _unary("gelu", "F.gelu({a})", elementwise=False),
    _unary("silu", "F.silu({a})", elementwise=False),
    _unary("mish", "F.mish({a})", elementwise=False),
    _unary("hardswish", "F.hardswish({a})"),
    _unary("logsigmoid", "F.logsigmoid({a})"),
    _unary("softplus", "F.softplus({a})", autocast="free", elementwise=False),
    _unary("elu", "F.elu({a})", elementwise=False),
    _unary("leaky_relu", "F.leaky_relu({a}, 0.1)"),
    _unary("hardtanh", "F.hardtanh({a})"),
    _unary("tanh_module", "{module}({a})", setup="nn.Tanh()", saves_result=True),
    _unary("gelu_module", "{module}({a})", setup="nn.GELU()", elementwise=False),
    _unary("clamp", "{a}.clamp(-1.5, 1.5)"),
    Operation(
        "prelu", _FAMILY, "{module}({a})", setup="nn.PReLU()", autocast="low", trainable=True, empty=True,
    ),
    Operation(
        "glu", _FAMILY, "F.glu({a}, -1)", accepts=even_last, empty=True,
        results=shaped(lambda shape, k: (*shape[:-1], shape[-1] // 2)),
    ),
    Operation("pow", _FAMILY, "{a} ** {n}", attributes={"n": one_of(3, 2)}, empty=True, elementwise=True, autocast="free"),
    Operation("scale", _FAMILY, "{a} * {c}", attributes={"c": one_of(2.0, 0.5, -1.5)}, empty=True, elementwise=True),
    Operation("shift", _FAMILY, "{a} + {c}", attributes={"c": one_of(1.0, -0.5)}, empty=True, elementwise=True),
    Operation(
        "times_python", _FAMILY, "{a} * float({b} or 1)", partners=(Partner(_python_number),), empty=True, elementwise=True,
    ),
    _binary("add", "{a} + {b}", ROW),
    _binary("sub", "{a} - {b}", ROW),
    _binary("mul", "{a} * {b}", ROW),
    _binary("div", "{a} / (1.5 + {b}.abs())", ROW),
    _binary("maximum", "torch.maximum({a}, {b})", FULL),
    _binary("minimum", "torch.minimum({a}, {b})", FULL),
    _binary("where", "torch.where({a} > 0, {a}, {b})", FULL),
    _binary("hypot", "torch.hypot({a}, {b}.abs() + 0.5)", FULL, saves_result=True),
    _binary("logaddexp", "torch.logaddexp({a}, {b})", FULL),
    _binary("lerp", "torch.lerp({a}, {b}, 0.3)", TWIN),
    _binary("addcmul", "torch.addcmul({a}, {b}, {c}, value=0.5)", INTO, INTO, autocast="free"),
)  # fmt: skip
