"""The trait table, and what traits say of a case."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from gradcheck_plus import support
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
from gradcheck_plus.execute import execute
from gradcheck_plus.operations import CATALOGUE
from gradcheck_plus.subject import KINDS, Kind, Subject
from gradcheck_plus.traits import TRAITS, Facts, clashes, compatible, drawable, exact, traits

#: They have no annotations: they are printed into repros, which a person reads.
leaves: Callable[..., Any] = support.leaves
plain_stage_backward: Callable[..., Any] = support.plain_stage_backward
Write = Callable[..., Case]

GRAD = Spec((2, 3), requires_grad=True)
X0, X1 = Primal("x0", GRAD), Primal("x1", GRAD, 2)
PLAIN = Primal("x1", Spec((2, 3)), 2)


def outputs(*children: Any, kind: Any = "tuple", keys: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"output": Container(kind, tuple(Name(c) if isinstance(c, str) else c for c in children), keys)}


# the table --------------------------------------------------------------------------------------------------------------


def test_every_trait_has_a_meaning_in_words() -> None:
    for name, trait in TRAITS.items():
        assert name == trait.name
        assert name == name.lower()
        assert " " not in name
        assert 5 < len(trait.meaning) < 90, name
        assert not trait.meaning.endswith("."), name


def test_meanings_tell_traits_apart() -> None:
    assert len({t.meaning for t in TRAITS.values()}) == len(TRAITS)


def test_traits_speak_only_of_traits_of_the_table() -> None:
    for trait in TRAITS.values():
        assert set(trait.needs) | set(trait.clashes) <= set(TRAITS), trait
        assert trait.name not in {*trait.needs, *trait.clashes}, trait
        assert set(trait.kinds) <= set(KINDS), trait
        assert trait.kinds, trait


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_trait_needs_can_be_aimed_at_with_it(kind: Kind) -> None:
    """For the same kind of subject; and what it needs needs nothing more that is not said."""
    for name in drawable(kind):
        needs = TRAITS[name].needs
        assert set(needs) <= set(drawable(kind)), name
        assert all(set(TRAITS[need].needs) <= set(needs) for need in needs), name
        assert all(compatible(a, b) for a in (name, *needs) for b in (name, *needs)), name


def test_what_cannot_be_aimed_at_needs_and_excludes_nothing() -> None:
    assert [t.name for t in TRAITS.values() if not t.drawn and (t.needs or t.clashes)] == []


def test_traits_of_operations_are_traits_of_the_table() -> None:
    found = {trait for operation in CATALOGUE.values() for trait in operation.traits}

    assert found <= set(TRAITS)
    assert all(TRAITS[name].drawn for name in found)


def test_clashes_go_both_ways() -> None:
    for a in TRAITS:
        for b in TRAITS:
            assert compatible(a, b) == compatible(b, a)
            assert compatible(a, b) == (b not in clashes()[a])
    assert not compatible("dropout", "eval")
    assert compatible("dropout", "view")


@pytest.mark.parametrize("kind", KINDS)
def test_drawable_traits_are_those_of_the_kind_in_table_order(kind: Kind) -> None:
    assert list(drawable(kind)) == [t.name for t in TRAITS.values() if t.drawn and kind in t.kinds]
    assert "second-backward" not in drawable("stage-backward")
    assert "reversed-keys" not in drawable("checkpoint")


def test_exactness_is_lost_by_any_inexact_trait() -> None:
    inexact = {name for name, trait in TRAITS.items() if trait.inexact}

    assert exact(())
    assert exact(set(TRAITS) - inexact)
    assert {"summed-across-cut", "free-strides", "other-kernel", "own-module"} <= inexact
    assert not any(exact({"view", name}) for name in inexact)


# drawn cases ------------------------------------------------------------------------------------------------------------

#: Cases of generated programs do not have them.
ELSEWHERE = {"own-module"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_trait_is_true_for_some_drawn_case_and_false_for_another(
    kind: Kind, drawn: Mapping[Kind, Sequence[Case]]
) -> None:
    """Or nothing would be known of how subjects fare with it, or without."""
    found = [traits(case) for case in drawn[kind]]
    expected = {name for name, trait in TRAITS.items() if kind in trait.kinds} - ELSEWHERE

    assert expected - frozenset().union(*found) == set()
    assert frozenset.intersection(*found) == frozenset()


@pytest.mark.parametrize("kind", KINDS)
def test_no_drawn_case_has_a_trait_of_another_kind(kind: Kind, drawn: Mapping[Kind, Sequence[Case]]) -> None:
    others = {name for name, trait in TRAITS.items() if kind not in trait.kinds}

    assert [(c, traits(c) & others) for c in drawn[kind] if traits(c) & others] == []


@pytest.mark.parametrize("kind", KINDS)
def test_traits_are_a_function_of_the_case(kind: Kind, drawn: Mapping[Kind, Sequence[Case]]) -> None:
    """Not of how it was drawn."""
    assert [c for c in drawn[kind] if traits(Case.from_json(c.to_json())) != traits(c)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_trait_of_part_of_what_it_needs_is_never_alone(kind: Kind, drawn: Mapping[Kind, Sequence[Case]]) -> None:
    """A trait comes with those that it needs."""
    for case in drawn[kind]:
        found = traits(case)
        missing = {(name, need) for name in found for need in TRAITS[name].needs if need not in found}
        assert missing == set(), case.to_json()


def test_the_plainest_case_has_no_trait(write: Write) -> None:
    assert traits(write("h0 = sin(x0)")) == frozenset()


# one by one -------------------------------------------------------------------------------------------------------------


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


def test_a_keyword_is_one_of_a_tensor(write: Write) -> None:
    number = Primal("x1", Spec((), "python"), constant=2)
    tensor = write("h0 = mul(x0, x1)", primals=[X0, X1], changes={0: {"args": (Name("x0"),), "kwargs": (("x1", Name("x1")),)}})
    scalar = write(
        "h0 = times_python(x0, x1)", primals=[X0, number], changes={0: {"args": (Name("x0"),), "kwargs": (("x1", Name("x1")),)}}
    )

    assert has("kwarg-tensor", tensor, scalar) == [True, False]
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


# bits -------------------------------------------------------------------------------------------------------------------


def across(*cases: Case) -> list[bool]:
    return has("summed-across-cut", *cases)


def test_two_contributions_give_the_same_bits_in_either_order(write: Write) -> None:
    """Three need not, if they come from both sides of a cut."""
    two = write("h0 = sin(x0)", "h1 = tanh(x0)")
    three = write("h0 = sin(x0)", "h1 = mul(x0, x0)")
    inside = write(["h0 = mul(x0, x0)", "h1 = mul(h0, x0)"], "h2 = tanh(h1)")
    segments = write("h0 = sin(x0)", "h1 = tanh(x0)", "h2 = exp(x0)")

    assert across(two, three, inside, segments) == [False, True, False, True]


def test_a_parameter_sums_its_uses_in_all_segments(write: Write) -> None:
    p0 = [Parameter("p0", (3,), 0)]
    two = write("h0 = mul(x0, p0)", "h1 = mul(h0, p0)", parameters=p0)
    three = write("h0 = mul(x0, p0)", ["h1 = mul(h0, p0)", "h2 = mul(h1, p0)"], parameters=p0)

    assert across(two, three) == [False, True]


@pytest.mark.parametrize("more", [{"existing_grad": True}, {"schedule": "F0F1"}, {"schedule": "F00"}, {"schedule": "FF10"}])
def test_a_gradient_that_is_there_is_one_contribution_more(write: Write, more: dict[str, Any]) -> None:
    assert across(write("h0 = sin(x0)", "h1 = tanh(x0)", **more), write("h0 = mul(x0, x0)", "h1 = tanh(h0)", **more)) == [
        True,
        False,
    ]


def test_a_cotangent_is_a_contribution_from_outside(write: Write) -> None:
    lines = ["h0 = sin(x0)", "h1 = tanh(h0)", "h2 = exp(h0)"]
    once = write(lines, changes={0: outputs("h0", "h1")}, cotangents=[Cotangent(0, "[0]"), Cotangent(0, "[1]")])
    twice = write(lines, changes={0: outputs("h0", "h1", "h2")}, cotangents=[Cotangent(0, f"[{i}]") for i in range(3)])

    assert across(once, twice) == [True, True]
    assert across(write(["h0 = sin(x0)", "h1 = tanh(h0)"], changes={0: outputs("h0", "h1")})) == [False]


def test_a_tensor_that_is_passed_twice_is_two_leaves_inside(write: Write) -> None:
    alias = replace(X1, alias="x0")

    assert across(
        write("h0 = mul(x0, x1)", primals=[X0, alias]), write(["h0 = mul(x0, x1)", "h1 = mul(h0, x0)"], primals=[X0, alias])
    ) == [False, True]


def free(*cases: Case) -> list[bool]:
    return has("free-strides", *cases)


def test_strides_are_free_where_a_gradient_crosses_towards_what_is_not_elementwise(write: Write) -> None:
    """Elementwise operations give the same bits whatever the strides of what arrives."""
    elementwise = write("h0 = sin(x0)", "h1 = exp(h0)")
    sums = write("h0 = softmax(x0)", "h1 = softmax(h0)")
    into_elementwise = write("h0 = sin(x0)", "h1 = softmax(h0)")
    out_of_elementwise = write("h0 = softmax(x0)", "h1 = sin(h0)")
    single = write(["h0 = softmax(x0)", "h1 = softmax(h0)"])

    assert free(elementwise, sums, into_elementwise, out_of_elementwise, single) == [False, True, False, False, False]


def test_strides_pass_through_elementwise_segments(write: Write) -> None:
    assert free(write("h0 = softmax(x0)", "h1 = sin(h0)", "h2 = softmax(h1)")) == [True]
    assert free(write("h0 = softmax(x0)", "h1 = detach(h0)", ["h2 = softmax(h1)", "h3 = mul(h2, x0)"])) == [False]


def test_an_expanded_view_has_free_strides_from_the_start(write: Write) -> None:
    """Its graph goes on, so that autograd does not lay its gradient out as it lies."""
    expanded, leaf = (
        write("h0 = softmax(x0)", primals=[replace(X0, layout=layout)]) for layout in ("expanded-view", "expanded")
    )

    assert free(expanded, leaf, write("h0 = sin(x0)", primals=[replace(X0, layout="expanded-view")])) == [True, False, False]


def test_what_torch_calls_a_view_is_one(drawn: Mapping[Kind, Sequence[Case]]) -> None:
    """Of outputs as the operation makes them: a backward hook makes a view of anything."""
    seen: list[bool] = []

    def watching(output: Any, grads: Any, inputs: Any) -> Any:
        seen.extend(o._is_view() for o, _ in leaves(output, grads))
        return plain_stage_backward(output, grads, inputs)

    views = 0
    for case in drawn["stage-backward"]:
        passed = traits(case) & {"passthrough-output", "in-place", "no-grad-island", "backward-hook", "inner-checkpoint"}
        if not passed and "forward" not in case.environment.hooks:
            seen.clear()
            execute(case, Subject("watching", "stage-backward", watching, "strict"))
            assert not any(seen) or "view-output" in traits(case), case.to_json()
            views += any(seen)
    assert views > 10


def test_an_lstm_takes_another_kernel(write: Write) -> None:
    primals = [Primal("x0", Spec((2, 2, 4), requires_grad=True))]

    assert has("other-kernel", write("h0 = lstm(x0)", primals=primals), write("h0 = linear(x0)", primals=primals)) == [
        True,
        False,
    ]


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


# facts ------------------------------------------------------------------------------------------------------------------


def test_crossings_are_the_uses_outside_the_segment_that_made_a_value(write: Write) -> None:
    facts = Facts(write("h0 = sin(x0)", "h1 = mul(h0, x0)", "h2 = mul(h1, h0)"))

    assert set(facts.crossings) == {("x0", -1, 0), ("h0", 0, 1), ("x0", -1, 1), ("h1", 1, 2), ("h0", 0, 2)}


def test_reached_is_what_a_gradient_comes_back_to(write: Write) -> None:
    case = write(
        ["h0 = sin(x0)", "h1 = mul(h0, p0)", "h2 = detach(x1)", "h3 = tanh(x1)", "h4 = mul(h1, h2)"],
        primals=[X0, X1],
        parameters=[Parameter("p0", (3,), 0), Parameter("p1", (3,), 0)],
        changes={0: outputs("h4", "h3")},
        cotangents=[Cotangent(0, "[0]")],
    )

    assert Facts(case).reached == {"h4", "h1", "h0", "x0", "p0"}
