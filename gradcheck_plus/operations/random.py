"""Operations that draw from the generator. In eval mode dropout returns its operand, so what it returns may be a view."""

from collections.abc import Callable, Sequence

from gradcheck_plus.case import Scalar, Spec
from gradcheck_plus.operations.conditions import at_least, one_of, rank, wide_last
from gradcheck_plus.operations.entry import Accepts, Operation

_FAMILY = "random"
_P: dict[str, Callable[[Spec], Sequence[Scalar]]] = {"p": one_of(0.5, 0.2)}
_RANDOM = ("random",)


def _dropout(
    name: str, line: str, *, setup: str = "", accepts: Accepts = lambda a: True, inner_view: Accepts = lambda a: False
) -> Operation:
    return Operation(
        name, _FAMILY, line, setup=setup, accepts=accepts, attributes=_P, view=True, empty=True, elementwise=True,
        inner_view=inner_view, traits=("dropout",),
    )  # fmt: skip


def _not_float16(a: Spec) -> bool:
    return a.dtype not in ("float16", "float")


OPERATIONS = (
    _dropout("dropout", "{module}({a})", setup="nn.Dropout({p})"),
    _dropout("functional_dropout", "F.dropout({a}, {p}, training=self.training)"),
    _dropout("dropout1d", "{module}({a})", setup="nn.Dropout1d({p})", accepts=rank(2, 3), inner_view=rank(2)),
    _dropout("dropout2d", "{module}({a})", setup="nn.Dropout2d({p})", accepts=rank(4)),
    _dropout("feature_dropout", "torch.feature_dropout({a}, {p}, self.training)", accepts=at_least(2)),
    _dropout("alpha_dropout", "{module}({a})", setup="nn.AlphaDropout({p})"),
    _dropout("feature_alpha_dropout", "F.feature_alpha_dropout({a}, {p}, training=self.training)", accepts=at_least(2)),
    Operation(
        # A CPU has no float16 kernel.
        "rrelu", _FAMILY, "F.rrelu({a}, training=self.training)", accepts=_not_float16, empty=True, elementwise=True,
        traits=("random-activation",),
    ),
    Operation("noise", _FAMILY, "{a} * torch.rand_like({a})", empty=True, elementwise=True, traits=_RANDOM),
    Operation("normal_noise", _FAMILY, "{a} + torch.randn_like({a})", empty=True, elementwise=True, traits=_RANDOM),
    Operation(
        "gate", _FAMILY, "{a} * torch.bernoulli(torch.full_like({a}, 0.5))", empty=True, elementwise=True, traits=_RANDOM
    ),
    Operation(
        "gumbel_softmax", _FAMILY, "F.gumbel_softmax({a}, tau={tau})", accepts=wide_last, attributes={"tau": one_of(1.0, 0.5)},
        saves_result=True, autocast="free", empty=True, traits=_RANDOM,
    ),
)  # fmt: skip
