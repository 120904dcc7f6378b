"""Operations that change their operand. They are drawn only for values that nothing else looks at."""

from collections.abc import Callable, Mapping, Sequence

from gradcheck_plus.case import Scalar, Spec
from gradcheck_plus.operations.conditions import INDICES, INTO, MASK, TWIN, P, filled_first, filled_last, one_of
from gradcheck_plus.operations.entry import Operation, Partner
from gradcheck_plus.operations.tables import functions, layers

_FAMILY = "in-place"


def _changed(
    name: str,
    line: str,
    *,
    setup: str = "",
    partners: tuple[Partner, ...] = (),
    attributes: Mapping[str, Callable[[Spec], Sequence[Scalar]]] | None = None,
    saves_result: bool = False,
    traits: tuple[str, ...] = (),
) -> Operation:
    return Operation(
        name, _FAMILY, line, setup=setup, partners=partners, attributes=attributes or {}, in_place=True, empty=True,
        elementwise=partners in ((), (MASK,)),
        saves_result=saves_result, traits=("in-place", *traits),
    )  # fmt: skip


OPERATIONS = (
    _changed("relu_", "{a}.relu_()", saves_result=True),
    _changed("sigmoid_", "{a}.sigmoid_()", saves_result=True),
    _changed("clamp_", "{a}.clamp_(-1.5, 1.5)"),
    _changed("add_", "{a}.add_({c})", attributes={"c": one_of(1.0, -0.5)}),
    _changed("mul_", "{a}.mul_({c})", attributes={"c": one_of(2.0, -1.5)}),
    _changed("sub_", "{a}.sub_({b})", partners=(INTO,)),
    _changed("masked_fill_", "{a}.masked_fill_(~{b}, 0.5)", partners=(MASK,)),
    _changed("hardtanh_", "{module}({a})", setup="nn.Hardtanh(inplace=True)"),
    _changed(
        "dropout_", "F.dropout({a}, {p}, training=self.training, inplace=True)", attributes={"p": one_of(0.5, 0.2)},
        traits=("dropout",),
    ),
    *functions(
        _FAMILY, {
            "sin_": "{a}.sin_()",
            "cos_": "{a}.cos_()",
            "neg_": "{a}.neg_()",
            "square_": "{a}.square_()",
            "abs_": "{a}.abs_()",
            "erf_": "{a}.erf_()",
            "atan_": "{a}.atan_()",
            "floor_mod_": "{a}.remainder_(1.25)",
            "frac_": "{a}.frac_()",
            "pow_": "{a}.pow_(2)",
            "hardswish_": "F.hardswish({a}, inplace=True)",
            "threshold_": "F.threshold_({a}, 0.1, 20.0)",
            "relu6_": "F.relu6({a}, inplace=True)",
            "hardsigmoid_": "F.hardsigmoid({a}, inplace=True)",
            "div_": "{a}.div_(2)",
            "clip_": "{a}.clip_(max=1.5)",
            "nan_to_num_": "{a}.nan_to_num_()",
            "tril_like_": "{a}.mul_(1.5).add_(0.5)",
            "log1p_": "{a}.abs_().log1p_()",
            "hardtanh_function_": "F.hardtanh_({a})",
        },
        in_place=True, traits=("in-place",), elementwise=True, empty=True,
    ),
    *functions(
        _FAMILY, {
            "tanh_": "{a}.tanh_()",
            "exp_": "{a}.mul_(0.25).exp_()",
            "elu_": "F.elu_({a})",
            "celu_": "F.celu_({a})",
            "selu_": "F.selu_({a})",
            "leaky_relu_": "F.leaky_relu_({a}, 0.1)",
            "expm1_": "{a}.div_(8).expm1_()",
            "sqrt_": "{a}.abs_().add_(0.5).sqrt_()",
            "reciprocal_": "{a}.abs_().add_(1).reciprocal_()",
            "relu_function_": "F.relu_({a})",
        },
        in_place=True, traits=("in-place",), elementwise=True, empty=True, saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "silu_": "F.silu({a}, inplace=True)",
            "mish_": "F.mish({a}, inplace=True)",
        },
        in_place=True, traits=("in-place",), empty=True,
    ),
    *layers(
        _FAMILY, {
            "relu_module_": "nn.ReLU(inplace=True)",
            "elu_module_": "nn.ELU(inplace=True)",
        },
        in_place=True, traits=("in-place",), elementwise=True, empty=True, saves_result=True,
    ),
    *layers(
        _FAMILY, {
            "silu_module_": "nn.SiLU(inplace=True)",
        },
        in_place=True, traits=("in-place",), empty=True,
    ),
    *functions(
        _FAMILY, {
            "iadd": "{a}.add_({b})",
            "mul_tensor_": "{a}.mul_({b})",
            "div_tensor_": "{a}.div_({b}.abs() + 1)",
            "copy_half_": "{a}.mul_(0.5).add_({b}, alpha=2)",
        },
        in_place=True, traits=("in-place",), partners=(INTO,), empty=True,
    ),
    *functions(
        _FAMILY, {
            "addcmul_": "{a}.addcmul_({b}, {c})",
            "addcdiv_": "{a}.addcdiv_({b}, {c}.abs() + 1)",
        },
        in_place=True, traits=("in-place",), partners=(INTO, INTO), empty=True,
    ),
    *functions(
        _FAMILY, {
            "lerp_": "{a}.lerp_({b}, 0.3)",
            "maximum_": "{a}.atan2_({b}.abs() + 0.5)",
        },
        in_place=True, traits=("in-place",), partners=(TWIN,), empty=True,
    ),
    *functions(
        _FAMILY, {
            "index_add_": "{a}.index_add_(-1, {b}[:1] % {a.last}, {a}[..., :1] * 2)",
            "index_fill_": "{a}.index_fill_(-1, {b}[:1] % {a.last}, 0.5)",
            "index_copy_": "{a}.index_copy_(-1, {b}[:1] % {a.last}, {a}[..., :1] * 2)",
            "scatter_add_": "{a}.scatter_add_(-1, ({b}[:1] % {a.last}).expand(*{a}.shape[:-1], -1), {a}[..., :1] * 2)",
        },
        in_place=True, traits=("in-place",), accepts=filled_last, partners=(INDICES,), empty=True,
    ),
    *functions(
        _FAMILY, {
            "index_put_": "{a}.index_put_(({b} % {a.shape[0]},), {a}[{b} % {a.shape[0]}] * 2, accumulate=True)",
        },
        in_place=True, traits=("in-place",), accepts=filled_last, partners=(INDICES,),
    ),
    *functions(
        _FAMILY, {
            "rrelu_": "F.rrelu_({a}, training=self.training)",
        },
        in_place=True, traits=("in-place", "random-activation"), accepts=lambda a: a.dtype not in ("float16","float"),
        elementwise=True, empty=True, saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "feature_dropout_": "F.dropout({a}.mul_(2), {p}, training=self.training, inplace=True)",
        },
        in_place=True, traits=("in-place", "dropout"), attributes=P, elementwise=True, empty=True,
    ),
    *functions(
        _FAMILY, {
            "doubled_row": "doubled_row({a})",
        },
        traits=("in-place-view",), accepts=filled_first, elementwise=True, empty=True,
    ),
    *functions(
        _FAMILY, {
            "overwritten": "overwritten({a})",
        },
        traits=("in-place-view",), accepts=filled_last, empty=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "shifted_diagonal": "shifted_diagonal({a})",
        },
        traits=("in-place-view", "several-results"), accepts=lambda a: a.rank == 2 and a.shape[0] > 0 and a.last > 0,
        results=lambda specs, k: ((specs[0].shape, specs[0].dtype), ((min(specs[0].shape),), specs[0].dtype)), uses=2,
    ),
)  # fmt: skip
