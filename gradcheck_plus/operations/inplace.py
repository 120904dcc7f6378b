"""Operations that change their operand. They are drawn only for values that nothing else looks at."""

from collections.abc import Callable, Mapping, Sequence

from gradcheck_plus.case import Scalar, Spec
from gradcheck_plus.operations.conditions import INTO, MASK, one_of
from gradcheck_plus.operations.entry import Operation, Partner

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
)  # fmt: skip
