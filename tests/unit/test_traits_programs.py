"""What traits say of the inputs, outputs, operations and segments of a program."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from gradcheck_plus.case import (
    Case,
    Constant,
    Container,
    Cotangent,
    Environment,
    ModuleProgram,
    Name,
    Parameter,
    Primal,
    Spec,
    Value,
)
from gradcheck_plus.traits import traits

Write = Callable[..., Case]

GRAD = Spec((2, 3), requires_grad=True)
X0, X1 = Primal("x0", GRAD), Primal("x1", GRAD, 2)
PLAIN = Primal("x1", Spec((2, 3)), 2)


def outputs(*children: Any, kind: Any = "tuple", keys: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"output": Container(kind, tuple(Name(c) if isinstance(c, str) else c for c in children), keys)}


def has(trait: str, *cases: Case) -> list[bool]:
    return [trait in traits(case) for case in cases]


@pytest.mark.parametrize(
    ("kind", "keys", "named"),
    [("tuple", (), ()), ("list", (), ()), ("dict", ("a", "b"), ()), ("namedtuple", ("first", "second"), ("namedtuple-input",)),
     ("dataclass", ("first", "second"), ("dataclass-input",))],
)  # fmt: skip
def test_containers_of_inputs(write: Write, kind: Any, keys: tuple[str, ...], named: tuple[str, ...]) -> None:
    case = write("h0 = mul(x0, x1)", primals=[X0, X1], changes={
        0: {"args": (Container("list", (Container(kind, (Name("x0"), Name("x1")), keys),)),)}
    })  # fmt: skip

    assert {t for t in traits(case) if t.endswith("-input")} == {"nested-input", *named}


def test_whatever_is_passed_by_keyword_counts(write: Write) -> None:
    """Of what refuses keywords: a tensor or not, it makes no difference."""
    number = Primal("x1", Spec((), "python"), constant=2)
    tensor = write("h0 = mul(x0, x1)", primals=[X0, X1], changes={0: {"args": (Name("x0"),), "kwargs": (("x1", Name("x1")),)}})
    scalar = write(
        "h0 = times_python(x0, x1)", primals=[X0, number], changes={0: {"args": (Name("x0"),), "kwargs": (("x1", Name("x1")),)}}
    )

    assert has("kwarg-tensor", tensor, scalar, write("h0 = sin(x0)")) == [True, True, False]
    assert has("python-value", tensor, scalar) == [False, True]


def test_none_is_passed_as_a_constant_or_as_a_value(write: Write) -> None:
    constant = write("h0 = sin(x0)", changes={0: {"args": (Name("x0"), Container("list", (Constant(None),)))}})
    value = write("h0 = times_python(x0, x1)", primals=[X0, Primal("x1", Spec((), "python"), constant=None)])
    other = write("h0 = sin(x0)", changes={0: {"args": (Name("x0"), Constant(3))}})

    assert has("none-input", constant, value, other) == [True, True, False]


def test_nothing_that_is_returned_or_changed_depends_on_an_unused_input(write: Write) -> None:
    passed = {"args": (Name("x0"), Name("x1"))}
    unused = write("h0 = sin(x0)", primals=[X0, X1], changes={0: passed})
    returned = write("h0 = sin(x0)", primals=[X0, X1], changes={0: {**passed, **outputs("h0", "x1")}})
    used = write("h0 = mul(x0, x1)", primals=[X0, X1])
    number = write("h0 = sin(x0)", primals=[X0, Primal("x1", Spec((), "python"), constant=2)], changes={0: passed})
    beside = write("h0 = sin(x0)", "h1 = tanh(h0)", primals=[X0, X1], changes={0: {**passed, "region": False}})
    dead = write(["h0 = sin(x0)", "h1 = tanh(x1)"], primals=[X0, X1], changes={0: outputs("h0")})
    changed = write(["h0 = sin(x0)", "h1 = mul(x1, x1)", "h2 = clamp_(h1)"], primals=[X0, X1], changes={0: outputs("h0")})

    assert has("unused-input", unused, returned, used, number, beside) == [True, False, False, False, False]
    assert has("unused-input", dead, changed) == [True, False]
    assert has("passthrough-output", unused, returned) == [False, True]


def test_some_inputs_require_grad_and_some_do_not(write: Write) -> None:
    both = write("h0 = mul(x0, x1)", primals=[X0, X1])
    mixed = write("h0 = mul(x0, x1)", primals=[X0, PLAIN])
    none = write("h0 = mul(x0, p0)", primals=[replace(X0, spec=Spec((2, 3)))], parameters=[Parameter("p0", (3,), 0)])
    integer = write("h0 = index_select(x0, x1)", primals=[X0, Primal("x1", Spec((3,), "int64"), 2)])

    assert has("mixed-requires-grad", both, mixed, none, integer) == [False, True, False, False]
    assert has("no-grad-input", both, mixed, none, integer) == [False, False, True, False]
    assert has("region-without-grad-input", both, mixed, none, integer) == [False, False, True, False]
    assert has("integer-input", both, integer) == [False, True]


def test_a_later_region_may_be_the_one_without_grad(write: Write) -> None:
    case = write("h0 = sin(x0) no_grad", ["h1 = mul(h0, p0)"], parameters=[Parameter("p0", (3,), 1)])

    assert has("region-without-grad-input", case) == [True]
    assert has("region-without-grad-output", case, write("h0 = sin(x0)")) == [True, False]
    assert has("no-grad-island", case, write("h0 = sin(x0)")) == [True, False]


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("contiguous", set()), ("transposed", {"strided-input"}), ("strided", {"strided-input"}), ("offset", {"strided-input"}),
        ("expanded", {"expanded-input"}), ("view", {"non-leaf-input"}), ("computed", {"non-leaf-input"}),
        ("expanded-view", {"expanded-input", "non-leaf-input"}),
    ],
)  # fmt: skip
def test_layouts_of_inputs(write: Write, layout: Any, expected: set[str]) -> None:
    every = {"strided-input", "expanded-input", "non-leaf-input"}

    assert traits(write("h0 = sin(x0)", primals=[replace(X0, layout=layout)])) & every == expected
    scalar = traits(write("h0 = sin(x0)", primals=[Primal("x0", Spec((), requires_grad=True), layout=layout)]))
    assert scalar & every == expected & {"non-leaf-input"}, "a scalar has but one layout"


def test_inputs_that_are_one_tensor_or_one_memory(write: Write) -> None:
    alias = write("h0 = mul(x0, x1)", primals=[X0, replace(X1, alias="x0")])
    share = write("h0 = mul(x0, x1)", primals=[X0, replace(X1, share="x0")])

    assert has("duplicate-input", alias, share) == [True, False]
    assert has("shared-storage", alias, share) == [False, True]


def test_the_container_of_an_output_is_nested_if_it_is_more_than_a_flat_tuple(write: Write) -> None:
    lines = ["h0 = sin(x0)", "h1 = tanh(x0)"]
    inner = Container("tuple", (Name("h1"),))
    flat, deep, listed, single = (
        write(lines, changes={0: change})
        for change in (outputs("h0", "h1"), outputs("h0", inner), outputs("h0", "h1", kind="list"), outputs("h1"))
    )

    assert has("nested-output", flat, deep, listed, single, write("h0 = sin(x0)")) == [False, True, True, False, False]


def test_a_mixed_output_has_a_differentiable_tensor_bare_beside_one_in_a_container(write: Write) -> None:
    lines = ["h0 = sin(x0)", "h1 = tanh(x0)", "h2 = detach(x0)"]

    def case(*children: Any) -> Case:
        return write(lines, changes={0: outputs(*children)})

    def inner(*names: str) -> Container:
        return Container("list", (Container("dict", tuple(map(Name, names)), tuple("ab"[: len(names)])),))

    mixed = [case("h0", inner("h1")), case(inner("h1", "h2"), "h0", Constant(None)), case("h0", "h2", inner("h0"))]
    plain = [
        case("h0", "h1"),
        case(inner("h0", "h1")),
        case("h0", inner("h2")),
        case("h2", inner("h0")),
        case("h0", Constant(1)),
    ]

    assert has("mixed-output", *mixed) == [True] * 3
    assert has("mixed-output", *plain) == [False] * 5


def test_what_is_returned(write: Write) -> None:
    lines = ["h0 = sin(x0)", "h1 = detach(x0)", "h2 = argmax(x0)", "h3 = transpose(x0; i=0, j=1)"]
    expected = {
        ("h0",): set(),
        ("h0", "h1"): {"non-grad-output", "view-output"},
        ("h0", "h2"): {"integer-output"},
        ("h0", "h3"): {"several-outputs", "view-output"},
        ("h0", "h0"): {"duplicate-output"},
        ("h0", Constant(None)): {"constant-output"},
        ("x0", "h0"): {"passthrough-output", "several-outputs"},
    }  # fmt: skip
    every = set().union(*expected.values())

    for children, wanted in expected.items():
        assert traits(write(lines, changes={0: outputs(*children)})) & every == wanted, children


def test_an_output_that_autograd_keeps(write: Write) -> None:
    assert has("saved-output", write("h0 = tanh(x0)"), write("h0 = sin(x0)"), write(["h0 = tanh(x0)", "h1 = sin(h0)"])) == [
        True, False, False,
    ]  # fmt: skip


def test_an_outer_use_is_one_by_a_later_segment_and_by_the_loss(write: Write) -> None:
    both = write("h0 = sin(x0)", "h1 = tanh(h0)", cotangents=[Cotangent(0), Cotangent(1)])
    later = write("h0 = sin(x0)", "h1 = tanh(h0)")
    loss = write(["h0 = sin(x0)", "h1 = exp(x0)"], "h2 = tanh(h1)")
    primal = write("h0 = sin(x0)", "h1 = tanh(x0)", changes={1: outputs("h1", "x0")}, cotangents=[Cotangent(1, "[1]")])

    assert has("outer-use", both, later, loss, primal) == [True, False, False, False]


def test_a_skip_connection_passes_a_segment_by(write: Write) -> None:
    skip = write("h0 = sin(x0)", "h1 = tanh(h0)", "h2 = mul(h1, h0)")
    chain = write("h0 = sin(x0)", "h1 = tanh(h0)", "h2 = sin(h1)")
    primal = write("h0 = sin(x0)", "h1 = mul(h0, x0)", "h2 = mul(h1, x0)")

    assert has("skip-connection", skip, chain, primal) == [True, False, False]
    assert has("many-segments", skip, write("h0 = sin(x0)")) == [True, False]


def test_a_tie_across_segments_is_one_module_or_parameter_in_two(write: Write) -> None:
    p0 = [Parameter("p0", (3,), 0)]
    buffer = [Parameter("p0", (3,), 0, trainable=False, buffer=True)]
    inside = write(["h0 = square_linear(x0) @ a", "h1 = square_linear(h0) @ a"], "h2 = sin(h1)")
    across = write("h0 = square_linear(x0) @ a", "h1 = square_linear(h0) @ a")
    parameter = write("h0 = mul(x0, p0)", "h1 = mul(h0, p0)", parameters=p0)
    shared_buffer = write("h0 = mul(x0, p0)", "h1 = mul(h0, p0)", parameters=buffer)
    apart = write("h0 = square_linear(x0) @ a", "h1 = square_linear(h0) @ b")

    cases = (inside, across, parameter, shared_buffer, apart)
    assert has("tied-parameter", *cases) == [True, True, True, False, False]
    assert has("tied-across-segments", *cases) == [False, True, True, False, False]
    hooked = [replace(c, environment=Environment(hooks=("parameter",))) for c in (inside, across, parameter)]
    assert has("hook-on-tied-parameter", *hooked, across) == [False, True, True, False]


def test_parameters(write: Write) -> None:
    trained = write("h0 = mul(x0, p0)", parameters=[Parameter("p0", (3,), 0)])
    frozen = write("h0 = mul(x0, p0)", parameters=[Parameter("p0", (3,), 0, trainable=False)])
    layer = write("h0 = square_linear(x0) frozen")
    buffer = write("h0 = mul(x0, p0)", parameters=[Parameter("p0", (3,), 0, trainable=False, buffer=True)])
    unused = write("h0 = sin(x0)", parameters=[Parameter("p0", (3,), 0)])

    cases = (trained, frozen, layer, buffer, unused)
    assert has("frozen-parameter", *cases) == [False, True, True, False, False]
    assert has("direct-parameter", *cases) == [True, True, False, False, False]
    assert has("direct-buffer", *cases) == [False, False, False, True, False]
    assert has("unused-parameter", *cases) == [False, False, False, False, True]


def test_what_is_said_of_operations_is_said_of_regions(write: Write) -> None:
    """A plain segment beside them is nobody's business."""
    lines = ("h0 = dropout(x0)", "h1 = transpose(h0; i=0, j=1)")
    first = write(*lines, changes={1: {"region": False}})
    second = write(*lines, changes={0: {"region": False}})

    assert has("dropout", first, second) == [True, False]
    assert has("view", first, second) == [False, True]
    assert has("plain-segment", first, write(*lines)) == [True, False]


def test_batch_norm_updates_nothing_in_eval_mode(write: Write) -> None:
    primals = [Primal("x0", Spec((2, 4, 3), requires_grad=True))]

    assert has("batch-norm", *(write("h0 = batch_norm(x0)", primals=primals, train=train) for train in (True, False))) == [
        True, False,
    ]  # fmt: skip


# a user's own module ----------------------------------------------------------------------------------------------------


def own(features: Iterable[str] = (), **changes: Any) -> Case:
    program = ModuleProgram(
        "m:f", "m:g", (Container("dict", (Name("x0"),), ("a",)),), (), Container("list", (Name("y0"), Constant(None))),
        (Value("y0", GRAD),), tuple(features), **changes,
    )  # fmt: skip
    return Case(program, (Primal("x0", GRAD, sample="args[0]['a']"),), (Cotangent(0, "[0]"),))


def test_a_module_of_ones_own_has_the_traits_that_its_sample_call_shows() -> None:
    found = traits(own(["dropout"], draws=2))

    assert found == {"own-module", "nested-input", "nested-output", "constant-output", "dropout", "draw-before"}
