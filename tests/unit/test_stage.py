"""Running a case as a pipeline: every segment is a stage, and gradients cross by hand."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from gradcheck_plus import support
from gradcheck_plus.case import Case, Constant, Container, Cotangent, Name, Parameter, Primal, Spec
from gradcheck_plus.execute import execute, reference
from gradcheck_plus.record import Record
from gradcheck_plus.subject import Subject

#: They have no annotations: they are printed into repros, which a person reads.
plain_stage_backward: Callable[..., Any] = support.plain_stage_backward
values: Callable[..., Tensor] = support.values
Write = Callable[..., Case]

GRAD = Spec((2, 3), requires_grad=True)
PLAIN = reference("stage-backward")


def stages(call: Callable[..., Any]) -> Subject:
    return Subject("mine", "stage-backward", call, "strict")


def grad(record: Record, stage: int, name: str, *, forward: int = 0) -> Tensor | None:
    """Return what a stage sent back for one of its inputs."""
    suffix = f"_{forward}" if forward else ""
    return record.tensors["primal", f"stage{stage}{suffix}.gradients[{name!r}]"]


def watched(case: Case) -> tuple[Record, list[tuple[Any, Any, list[Any]]]]:
    """Return the record of plain autograd, and what each of its stage backwards was handed, in the order of the calls."""
    calls: list[tuple[Any, Any, list[Any]]] = []

    def call(output: Any, grads: Any, inputs: Any) -> Any:
        calls.append((output, grads, list(inputs)))
        return plain_stage_backward(output, grads, inputs)

    return execute(case, stages(call)), calls


def test_gradients_cross_from_the_last_stage_to_the_first(write: Write) -> None:
    record = execute(write("h0 = sin(x0)", "h1 = mul(h0, h0)", "h2 = scale(h1; c=2.0)"), PLAIN)
    x, c = values((2, 3), 1), values((2, 3), 11)

    assert torch.equal(grad(record, 2, "h1"), c * 2)  # type: ignore[arg-type]
    assert torch.allclose(grad(record, 1, "h0"), 2 * c * 2 * x.sin())  # type: ignore[arg-type]
    assert torch.allclose(grad(record, 0, "x0"), 2 * c * 2 * x.sin() * x.cos())  # type: ignore[arg-type]


def test_a_value_that_passes_a_stage_by_receives_from_all_that_use_it(write: Write) -> None:
    record, calls = watched(write("h0 = sin(x0)", "h1 = scale(h0; c=0.5)", "h2 = mul(h1, h0)"))
    arriving = calls[-1][1][0]
    first, second = grad(record, 1, "h0"), grad(record, 2, "h0")

    assert first is not None
    assert second is not None
    assert torch.equal(arriving, second + first)


def test_an_output_that_the_loss_uses_too_receives_both(write: Write) -> None:
    case = write("h0 = sin(x0)", "h1 = scale(h0; c=2.0)", cotangents=[Cotangent(1, "", 11), Cotangent(0, "", 12)])
    _, calls = watched(case)

    assert torch.equal(calls[-1][1][0], values((2, 3), 12) + values((2, 3), 11) * 2)


def test_what_is_returned_as_it_came_sends_its_cotangent_back(write: Write) -> None:
    case = write("h0 = sin(x0)", changes={0: {"output": Container("tuple", (Name("h0"), Name("x0")))}}, cotangents=[
        Cotangent(0, "[0]", 11), Cotangent(0, "[1]", 12),
    ])  # fmt: skip
    record = execute(case, PLAIN)
    expected = values((2, 3), 11) * values((2, 3), 1).cos() + values((2, 3), 12)

    assert torch.allclose(grad(record, 0, "x0"), expected)  # type: ignore[arg-type]


def test_each_stage_works_on_leaves_of_its_own(write: Write) -> None:
    """The graph ends at the boundary: the values are those that arrive, and nothing else crosses."""
    primals = [
        Primal("x0", GRAD, layout="computed"),
        Primal("x1", Spec((2, 3)), 2),
        Primal("x2", Spec((), "python"), constant=2),
    ]
    case = write(["h0 = mul(x0, x1)", "h1 = times_python(h0, x2)"], "h2 = mul(h1, x0)", primals=primals)
    record, calls = watched(case)
    [x0, x1, x2], [h1, again] = calls[1][2], calls[0][2]

    assert [t.is_leaf for t in (x0, x1, h1, again)] == [True] * 4
    assert [t.requires_grad for t in (x0, x1, h1, again)] == [True, False, True, True]
    assert x2 == 2
    assert x0 is not again
    assert torch.equal(x0, again)
    assert torch.equal(h1, record.tensors["output", "outputs[0]"])  # type: ignore[arg-type]


def test_a_value_that_is_passed_twice_is_one_input(write: Write) -> None:
    args = (Name("x0"), Container("list", (Name("x0"), Constant(None))))
    _, calls = watched(write("h0 = mul(x0, x0)", changes={0: {"args": args}}))

    assert len(calls[0][2]) == 1


def test_forwards_have_stages_of_their_own(write: Write) -> None:
    record = execute(write("h0 = mul(x0, x0)", "h1 = scale(h0; c=2.0)", schedule="FF10"), PLAIN)

    for forward in (0, 1):
        expected = 2 * values((2, 3), 11) * 2 * values((2, 3), 1 + 100 * forward)
        assert torch.equal(grad(record, 0, "x0", forward=forward), expected)  # type: ignore[arg-type]


def test_parameters_of_every_stage_and_forward_accumulate(write: Write) -> None:
    parameters = [Parameter("p0", (2, 3), 0)]
    case = write("h0 = mul(x0, p0)", "h1 = mul(h0, p0)", parameters=parameters, schedule="F0F1")
    whole, staged = (execute(case, reference(kind)) for kind in ("checkpoint", "stage-backward"))
    leaf = ("parameter", "params['segment0.p0'].grad")

    assert torch.allclose(staged.tensors[leaf], whole.tensors[leaf])  # type: ignore[arg-type,index]


@pytest.mark.parametrize("none", [True, False])
def test_an_output_that_receives_nothing_receives_none_or_zeros(write: Write, none: bool) -> None:
    case = write(["h0 = sin(x0)", "h1 = tanh(x0)"], cotangents=[Cotangent(0, "[0]", 11)], none_for_zero=none)
    _, calls = watched(case)
    [first, second] = calls[0][1]

    assert torch.equal(first, values((2, 3), 11))
    assert second is None if none else second.count_nonzero() == 0


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_element_that_receives_nothing_receives_a_zero(write: Write, shape: tuple[int, ...]) -> None:
    """For one element `torch.autograd.backward` takes `None` to mean 1, so nothing can only be said by a zero."""
    case = write(
        ["h0 = sin(x0)", "h1 = tanh(x0)"],
        primals=[Primal("x0", Spec(shape, requires_grad=True))],
        cotangents=[Cotangent(0, "[0]", 11)],
        none_for_zero=True,
    )
    record, calls = watched(case)

    assert torch.equal(calls[0][1][1], torch.zeros(shape))
    whole = execute(case, reference("checkpoint")).tensors["primal", "x0.grad"]
    assert torch.equal(grad(record, 0, "x0"), whole)  # type: ignore[arg-type]


def test_integers_and_constants_receive_none(write: Write) -> None:
    tree = Container("tuple", (Name("h0"), Name("h1"), Constant(3)))
    _, calls = watched(write(["h0 = sin(x0)", "h1 = argmax(x0)"], changes={0: {"output": tree}}))
    received = calls[0][1]

    assert isinstance(received[0], Tensor)
    assert received[1:] == (None, None)


NESTED = Container("dict", (Name("h0"), Container("list", (Name("h1"), Constant(None)))), ("a", "b"))


@pytest.mark.parametrize("reverse", [True, False])
def test_cotangents_have_the_structure_of_the_output(write: Write, reverse: bool) -> None:
    """The keys of a dict may come in another order."""
    case = write(["h0 = sin(x0)", "h1 = tanh(x0)"], changes={0: {"output": NESTED}}, cotangents=[
        Cotangent(0, "['a']", 11), Cotangent(0, "['b'][0]", 12),
    ], reversed_keys=reverse)  # fmt: skip
    record, calls = watched(case)
    received = calls[0][1]

    assert list(received) == (["b", "a"] if reverse else ["a", "b"])
    assert torch.equal(received["a"], values((2, 3), 11))
    assert torch.equal(received["b"][0], values((2, 3), 12))
    assert received["b"][1] is None
    x = values((2, 3), 1)
    expected = values((2, 3), 11) * x.cos() + values((2, 3), 12) * (1 - x.tanh() ** 2)
    assert torch.allclose(grad(record, 0, "x0"), expected)  # type: ignore[arg-type]


def test_a_bare_output_is_handed_over_as_a_tuple(write: Write) -> None:
    """As torch's pipelining does."""
    _, calls = watched(write("h0 = sin(x0)"))

    assert [type(part) for part in calls[0][:2]] == [tuple, tuple]


# what a subject may get wrong -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("returned", [(), (None, None), None, 3, torch.ones(2)])
def test_another_number_of_gradients_is_another_structure(write: Write, returned: Any) -> None:
    """It ends the run, and is no exception."""
    record = execute(write("h0 = sin(x0)"), stages(lambda *_: returned))
    expected = execute(write("h0 = sin(x0)"), PLAIN)
    key = ("primal", "stage0.gradients", "structure")

    assert record.raised is None
    assert record.facts[key] != expected.facts[key] == "1 gradients"  # type: ignore[index]


def test_a_list_of_gradients_will_do(write: Write) -> None:
    record = execute(write("h0 = sin(x0)"), stages(lambda *given: list(plain_stage_backward(*given))))

    assert record.facts["primal", "stage0.gradients", "structure"] == "1 gradients"


def test_a_gradient_that_is_lost_is_none(write: Write) -> None:
    assert grad(execute(write("h0 = sin(x0)"), stages(lambda *_: (None,))), 0, "x0") is None


def test_what_is_left_in_the_grad_of_an_input_is_in_the_record(write: Write) -> None:
    """A stage's inputs outlive it; what lies there is added to the next microbatch's gradient."""

    def call(output: Any, grads: Any, inputs: Any) -> Any:
        found = plain_stage_backward(output, grads, inputs)
        inputs[0].grad = torch.ones(2, 3)
        return found

    case = write("h0 = sin(x0)")
    leaf = ("leftover", "stage0.inputs['x0'].grad")

    assert execute(case, PLAIN).tensors[leaf] is None  # type: ignore[index]
    assert torch.equal(execute(case, stages(call)).tensors[leaf], torch.ones(2, 3))  # type: ignore[arg-type,index]


def test_a_gradient_is_recorded_as_it_was_returned(write: Write) -> None:
    """What changes it in place afterwards does not change the record."""
    kept: list[Tensor] = []

    def call(output: Any, grads: Any, inputs: Any) -> Any:
        for old in kept:
            old.zero_()
        found = plain_stage_backward(output, grads, inputs)
        kept.extend(g for g in found if g is not None)
        return found

    case = write("h0 = sin(x0)", "h1 = scale(h0; c=2.0)")

    assert grad(execute(case, stages(call)), 1, "h0").count_nonzero() == 6  # type: ignore[union-attr]


def test_a_flag_that_was_changed_meanwhile_hides_no_gradient(write: Write) -> None:
    """What is compared was settled before the call."""

    def detaching(output: Any, grads: Any, inputs: Any) -> Any:
        returned = plain_stage_backward(output, grads, inputs)
        for value in inputs:
            value.detach_()
        return returned

    case = write("h0 = sin(x0)")

    assert torch.equal(grad(execute(case, stages(detaching)), 0, "x0"), grad(execute(case, PLAIN), 0, "x0"))  # type: ignore[arg-type]
