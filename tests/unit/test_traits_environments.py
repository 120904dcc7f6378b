"""What traits say of the cotangents of a case, and of what surrounds it."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from gradcheck_plus.case import Case, Container, Cotangent, Environment, Name, Parameter, Primal, Spec
from gradcheck_plus.traits import traits

Write = Callable[..., Case]

GRAD = Spec((2, 3), requires_grad=True)
X0, X1 = Primal("x0", GRAD), Primal("x1", GRAD, 2)


def outputs(*children: Any, kind: Any = "tuple", keys: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"output": Container(kind, tuple(Name(c) if isinstance(c, str) else c for c in children), keys)}


def has(trait: str, *cases: Case) -> list[bool]:
    return [trait in traits(case) for case in cases]


# cotangents -------------------------------------------------------------------------------------------------------------


def test_none_is_the_cotangent_of_an_output_that_nothing_reaches(write: Write) -> None:
    lines = ["h0 = sin(x0)", "h1 = tanh(x0)"]
    both = write(lines)
    one = write(lines, cotangents=[Cotangent(0, "[0]")])
    through = write("h0 = sin(x0)", "h1 = tanh(h0)", cotangents=[Cotangent(1)])
    stopped = write("h0 = sin(x0)", ["h1 = detach(h0)", "h2 = mul(h1, p0)"], parameters=[Parameter("p0", (3,), 1)])
    flagless = write(["h0 = sin(x0)", "h1 = detach(x0)"])

    assert has("none-cotangent", both, one, through, stopped, flagless) == [False, True, False, True, False]


def test_a_stage_is_handed_none_for_what_it_returns_and_nobody_sends_back(write: Write) -> None:
    """Though the value is reached by another way: from its own stage's point of view it is not."""
    passthrough = outputs("h0", "x0")
    duplicate = outputs("h0", "h0")
    returned = write("h0 = sin(x0)", changes={0: passthrough}, cotangents=[Cotangent(0, "[0]")])
    twice = write("h0 = sin(x0)", changes={0: duplicate}, cotangents=[Cotangent(0, "[0]")])
    crossing = write("h0 = sin(x0)", "h1 = tanh(h0)")
    both = write("h0 = sin(x0)", changes={0: passthrough}, cotangents=[Cotangent(0, "[0]"), Cotangent(0, "[1]")])
    cases = (returned, twice, crossing, both)

    assert has("none-cotangent", *cases) == [False] * 4
    assert has("none-cotangent", *(replace(c, environment=Environment(none_for_zero=True)) for c in cases)) == [
        True, True, False, False,
    ]  # fmt: skip


def test_an_input_that_nothing_reaches_may_have_a_hook(write: Write) -> None:
    lines, primals = ["h0 = sin(x0)", "h1 = tanh(x1)"], [X0, X1]
    hooked, other = (
        write(lines, primals=primals, cotangents=[Cotangent(0, "[0]")], hooks=hooks) for hooks in (("input",), ("parameter",))
    )

    assert has("hook-on-unreached-input", hooked, other, write(lines, primals=primals, hooks=("input",))) == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("changes", "trait"),
    [
        ({"fill": "zero"}, "zero-cotangent"), ({"fill": "one-hot"}, "one-hot-cotangent"),
        ({"layout": "expanded"}, "expanded-cotangent"), ({"layout": "transposed"}, "strided-cotangent"),
        ({"layout": "strided"}, "strided-cotangent"), ({"layout": "offset"}, "strided-cotangent"),
    ],
)  # fmt: skip
def test_what_a_cotangent_is_like(write: Write, changes: dict[str, Any], trait: str) -> None:
    assert traits(write("h0 = sin(x0)", cotangents=[replace(Cotangent(0), **changes)])) == {trait}


def test_keys_can_only_be_reversed_in_a_dict(write: Write) -> None:
    lines = ["h0 = sin(x0)", "h1 = tanh(x0)"]
    dictionary, other = (
        write(lines, changes={0: change}, reversed_keys=True)
        for change in (outputs("h0", "h1", kind="dict", keys=("a", "b")), outputs("h0", "h1"))
    )

    assert has("reversed-keys", dictionary, other) == [True, False]


# environments -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"train": False}, {"eval"}),
        ({"autocast": "bfloat16"}, {"autocast-bfloat16"}),
        ({"autocast": "float16"}, {"autocast-float16"}),
        ({"draws_after": 1}, {"draw-after"}),
        ({"existing_grad": True}, {"existing-grad"}),
        ({"schedule": "F00"}, {"second-backward"}),
        ({"schedule": "F0F1"}, {"accumulation"}),
        ({"schedule": "F0F1", "reuses_inputs": True}, {"accumulation", "reused-input"}),
        ({"schedule": "FF01"}, {"accumulation", "two-forwards"}),
        ({"schedule": "FF10"}, {"accumulation", "two-forwards"}),
        ({"changes_parameter": True}, {"parameter-changed", "reference-raises"}),
        ({"hooks": ("input",)}, {"input-hook"}),
        ({"hooks": ("parameter",)}, {"parameter-hook"}),
        ({"hooks": ("post-accumulate",)}, {"post-accumulate-hook"}),
        ({"hooks": ("forward", "backward")}, {"forward-hook", "backward-hook"}),
    ],
)
def test_what_surrounds_a_case(write: Write, environment: dict[str, Any], expected: set[str]) -> None:
    assert traits(write("h0 = sin(x0)", **environment)) == expected


def test_random_numbers_are_drawn_before_or_between(write: Write) -> None:
    before, between = (write("h0 = sin(x0)", "h1 = tanh(h0)", changes={i: {"draws": 1}}) for i in (0, 1))

    assert has("draw-before", before, between) == [True, False]
    assert has("draw-between", before, between) == [False, True]
