"""Pointwise functions of one and of several tensors. None has an infinite slope: a NaN would hide what follows it."""

from gradcheck_plus.case import Spec
from gradcheck_plus.operations.conditions import FULL, INTO, ROW, TWIN, even_last, one_of, shaped, together
from gradcheck_plus.operations.entry import Autocast, Operation, Partner
from gradcheck_plus.operations.tables import functions

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
    *functions(
        _FAMILY, {
            "acos": "torch.acos({a} / 300)",
            "asin": "torch.asin({a} / 300)",
            "cosh": "torch.cosh({a} * 0.125)",
            "sinh": "torch.sinh({a} * 0.125)",
            "erfinv": "torch.erfinv({a} / 300)",
            "log": "torch.log({a}.abs() + 0.5)",
            "log2": "torch.log2({a}.abs() + 0.5)",
            "log10": "torch.log10({a}.abs() + 0.5)",
            "float_power": "torch.float_power({a}, 2).to({a}.dtype)",
        },
        autocast="free", elementwise=True, empty=True,
    ),
    *functions(
        _FAMILY, {
            "acosh": "torch.acosh({a}.abs() + 1.5)",
            "asinh": "torch.asinh({a})",
            "atanh": "torch.atanh({a} / 300)",
            "erfc": "torch.erfc({a})",
            "sinc": "torch.sinc({a} / 8)",
            "deg2rad": "torch.deg2rad({a} * 16)",
            "rad2deg": "torch.rad2deg({a} / 16)",
            "frac": "torch.frac({a})",
            "nan_to_num": "torch.nan_to_num({a})",
            "clamp_min": "{a}.clamp_min(-1.5)",
            "clamp_max": "{a}.clamp_max(1.5)",
            "clip": "torch.clip({a}, max=1.5)",
            "fmod": "torch.fmod({a}, 1.25)",
            "remainder": "torch.remainder({a}, 1.25)",
            "rsub": "1 - {a}",
            "relu6": "F.relu6({a})",
            "hardsigmoid": "F.hardsigmoid({a})",
            "hardshrink": "F.hardshrink({a})",
            "softshrink": "F.softshrink({a})",
            "threshold": "F.threshold({a}, 0.1, 20.0)",
            "frexp": "torch.frexp({a}).mantissa",
            "true_divide": "torch.true_divide({a}, 3)",
            "copy": "torch.empty_like({a}).copy_({a})",
            "to_copy": "{a}.to({a}.dtype, copy=True)",
        },
        elementwise=True, empty=True,
    ),
    *functions(
        _FAMILY, {
            "tan": "torch.tan({a}.sin())",
            "expm1": "torch.expm1({a} * 0.125)",
            "rsqrt": "torch.rsqrt({a}.abs() + 0.5)",
        },
        autocast="free", elementwise=True, empty=True, saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "exp2": "torch.exp2({a} * 0.125)",
            "ldexp": "torch.ldexp({a}, {a}.new_tensor(2))",
        },
        elementwise=True, empty=True, saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "ceil": "{a} - torch.ceil({a}).sin()",
            "floor": "{a} + torch.floor({a}) / 4",
            "round": "{a} - torch.round({a}) / 4",
            "trunc": "{a} + torch.trunc({a}) / 4",
            "sign": "{a} * torch.sign({a})",
            "sgn": "{a} * torch.sgn({a})",
            "softsign": "F.softsign({a})",
            "tanhshrink": "F.tanhshrink({a})",
        },
        empty=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "celu": "F.celu({a})",
            "selu": "F.selu({a})",
        },
        autocast="free", empty=True,
    ),
    *functions(
        _FAMILY, {
            "gelu_tanh": 'F.gelu({a}, approximate="tanh")',
        },
        empty=True,
    ),
)  # fmt: skip
