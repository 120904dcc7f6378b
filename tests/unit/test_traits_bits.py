"""Traits that say where bits need not be equal, and the facts that they are read off."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from gradcheck_plus import support
from gradcheck_plus.case import Case, Container, Cotangent, Environment, Name, Parameter, Plan, Primal, Spec
from gradcheck_plus.execute import execute
from gradcheck_plus.subject import Kind, Subject
from gradcheck_plus.traits import Facts, traits

#: They have no annotations: they are printed into repros, which a person reads.
leaves: Callable[..., Any] = support.leaves
plain_stage_backward: Callable[..., Any] = support.plain_stage_backward
Write = Callable[..., Case]

GRAD = Spec((2, 3), requires_grad=True)
X0, X1 = Primal("x0", GRAD), Primal("x1", GRAD, 2)


def outputs(*children: Any, kind: Any = "tuple", keys: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"output": Container(kind, tuple(Name(c) if isinstance(c, str) else c for c in children), keys)}


def has(trait: str, *cases: Case) -> list[bool]:
    return [trait in traits(case) for case in cases]


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


def test_autocast_may_cast_what_control_flow_hands_on_once_or_once_a_use(write: Write) -> None:
    """It may be the input itself, of which autocast remembers the copy where it is a leaf."""
    used = ["h0 = branch(x0)", "h1 = matmul(h0, h0)"]
    square = Primal("x0", Spec((3, 3), requires_grad=True))
    under, plain = (write(used, primals=(square,), autocast=autocast) for autocast in ("bfloat16", ""))
    once = write(["h0 = branch(x0)", "h1 = sin(h0)"], primals=(square,), autocast="bfloat16")

    assert has("shared-cast", under, plain, once) == [True, False, False]


# modules that are wrapped inside regions --------------------------------------------------------------------------------


def wrapping(case: Case, *inner: str) -> Case:
    return replace(case, plan=Plan(inner=inner))


def test_a_parameter_of_a_wrapped_module_sums_the_uses_of_each_call_apart(write: Write) -> None:
    """As a checkpoint around each call does."""
    x0 = [Primal("x0", Spec((2, 2, 4), requires_grad=True))]
    twice = write(["h0 = gru_two(x0) @ gru", "h1 = gru_two(h0) @ gru"], primals=x0)
    once = write("h0 = gru_two(x0) @ gru", primals=x0)

    assert across(twice, wrapping(twice, "segment0.gru"), wrapping(once, "segment0.gru")) == [False, True, False]


def test_a_wrapped_module_that_is_given_a_value_three_times_sums_apart_what_it_sums_at_once_otherwise(write: Write) -> None:
    """`nn.MultiheadAttention` sees that its three arguments are one tensor, unless a reentrant checkpoint stands between."""
    attention = write("h0 = multi_head(x0) @ heads", primals=[Primal("x0", Spec((2, 2, 4), requires_grad=True))])

    assert across(attention, wrapping(attention, "segment0.heads")) == [False, True]


def test_a_gradient_may_be_laid_out_anew_where_it_leaves_a_wrapped_module(write: Write) -> None:
    case = write(["h0 = linear(x0) @ first", "h1 = linear(h0) @ second"])

    assert has("free-strides", case, wrapping(case, "segment0.second"), wrapping(case, "segment0.elsewhere")) == [
        False,
        True,
        False,
    ]


def test_autocast_may_cast_what_a_wrapped_module_is_given_once_or_once_a_use(write: Write) -> None:
    case = write(["h0 = sin(x0)", "h1 = bilinear(h0) @ both"], autocast="bfloat16")

    assert has("shared-cast", case, wrapping(case, "segment0.both")) == [False, True]


def test_a_wrapped_module_whose_inputs_do_not_require_grad_is_seen_inside_a_region(write: Write) -> None:
    """The others of its line are not what it is called with."""
    case = write("h0 = embedding(x0, x1) @ rows", primals=[X0, Primal("x1", Spec((3,), "int64"), 2)])
    linear = write("h0 = linear(x0) @ rows")
    still = write("h0 = linear(x0) @ rows no_grad")
    wrapped = [wrapping(c, "segment0.rows") for c in (case, linear, still)]

    assert has("region-without-grad-input", case, *wrapped) == [False, True, False, False]


def test_a_change_in_place_of_what_a_wrapped_module_returns_is_seen(write: Write) -> None:
    changed = write(["h0 = linear(x0) @ first", "h1 = relu_(h0)"])
    other = write(["h0 = linear(x0) @ first", "h1 = sin(h0)", "h2 = relu_(h1)"])

    assert has("wrapped-result-changed", changed, *(wrapping(c, "segment0.first") for c in (changed, other))) == [
        False,
        True,
        False,
    ]


def test_a_sequence_names_the_modules_inside_it_by_number(write: Write) -> None:
    case = write(["h0 = linear(x0)", "h1 = relu_module(h0)"], changes={0: {"form": "sequential"}})

    assert [len(Facts(wrapping(case, path)).wrapped_calls) for path in ("segment0.0", "segment0.1", "segment0.linear0")] == [
        1,
        1,
        0,
    ]


def test_a_hook_on_a_parameter_that_is_used_for_nothing_is_seen(write: Write) -> None:
    lines = ["h0 = linear(x0) @ first", "h1 = linear(x0) @ second"]
    both, one = (
        write(lines, hooks=("post-accumulate",)),
        write(lines, hooks=("post-accumulate",), cotangents=[Cotangent(0, "[0]")]),
    )
    shared = write(["h0 = linear(x0) @ one", "h1 = linear(x0) @ one"], hooks=("parameter",), cotangents=[Cotangent(0, "[0]")])

    assert has("hook-on-unreached-parameter", both, one, shared, replace(one, environment=Environment())) == [
        False,
        True,
        False,
        False,
    ]
