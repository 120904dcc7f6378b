"""The gradients of a case, and the hooks that see them: how often they came, and what was added to what."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from msgspec.structs import replace
from torch import Tensor

from gradcheck_plus import support
from gradcheck_plus.case import Case, Cotangent, Name, Parameter, Primal, Spec
from gradcheck_plus.execute import execute, reference
from gradcheck_plus.record import Record
from gradcheck_plus.subject import Kind, Subject

#: It has no annotations: it is printed into repros, which a person reads.
values: Callable[..., Tensor] = support.values
Write = Callable[..., Case]

GRAD = Spec((2, 3), requires_grad=True)
PLAIN = reference("checkpoint")


def subject(call: Callable[..., Any], kind: Kind = "checkpoint") -> Subject:
    return Subject("mine", kind, call, "strict")


def tensor(record: Record, role: Any, leaf: str) -> Tensor:
    found = record.tensors[role, leaf]
    assert found is not None
    return found


def gradient(seed: int, cotangent: int) -> Tensor:
    """Return the gradient of x0 * x0 with the values and the cotangent of these seeds."""
    return values((2, 3), cotangent) * values((2, 3), seed) * 2


SQUARE = "h0 = mul(x0, x0)"


def test_a_gradient_is_that_of_the_cotangent(write: Write) -> None:
    assert torch.equal(tensor(execute(write(SQUARE), PLAIN), "primal", "x0.grad"), gradient(1, 11))


def test_a_second_backward_over_one_graph_adds_with_another_cotangent(write: Write) -> None:
    record = execute(write(SQUARE, schedule="F00"), PLAIN)

    assert torch.equal(tensor(record, "primal", "x0.grad"), gradient(1, 11) + gradient(1, 111))


@pytest.mark.parametrize("schedule", ["F0F1", "FF01", "FF10"])
def test_a_second_forward_has_leaves_of_its_own(write: Write, schedule: str) -> None:
    """Other values, and the same cotangent: it is the first backward over that graph."""
    record = execute(write(SQUARE, schedule=schedule), PLAIN)

    assert torch.equal(tensor(record, "primal", "x0.grad"), gradient(1, 11))
    assert torch.equal(tensor(record, "primal", "x0_1.grad"), gradient(101, 11))


def test_parameters_accumulate_over_forwards(write: Write) -> None:
    record = execute(write("h0 = mul(x0, p0)", parameters=[Parameter("p0", (2, 3), 0)], schedule="F0F1"), PLAIN)
    expected = values((2, 3), 11) * (values((2, 3), 1) + values((2, 3), 101))

    assert torch.allclose(tensor(record, "parameter", "params['segment0.p0'].grad"), expected)


def test_a_reused_input_is_one_leaf_for_both_forwards(write: Write) -> None:
    record = execute(write(SQUARE, schedule="F0F1", reuses_inputs=True), PLAIN)

    assert torch.equal(tensor(record, "primal", "x0.grad"), gradient(1, 11) + gradient(101, 11))
    assert torch.equal(tensor(record, "input", "x0"), values((2, 3), 101))
    assert ("primal", "x0_1.grad") not in record.tensors


def test_what_is_passed_twice_is_one_tensor_in_every_forward(write: Write) -> None:
    """Also where the second forward finds its inputs in the tensors of the first."""
    case = write(
        "h0 = mul(x0, x1)", primals=[Primal("x0", GRAD), Primal("x1", GRAD, 2, alias="x0")], schedule="F0F1", reuses_inputs=True
    )
    passed: list[tuple[Tensor, Tensor]] = []

    def call(function: Any, first: Tensor, second: Tensor) -> Any:
        passed.append((first, second))
        return function(first, second)

    record = execute(case, subject(call))

    assert [first is second for first, second in passed] == [True, True]
    assert torch.equal(tensor(record, "primal", "x0.grad"), gradient(1, 11) + gradient(101, 11))


def test_what_shares_memory_does_so_in_every_forward(write: Write) -> None:
    case = write(
        "h0 = mul(x0, x1)", primals=[Primal("x0", GRAD), Primal("x1", GRAD, 2, share="x0")], schedule="F0F1", reuses_inputs=True
    )
    shared: list[bool] = []

    def call(function: Any, first: Tensor, second: Tensor) -> Any:
        shared.append(first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr())
        return function(first, second)

    execute(case, subject(call))

    assert shared == [True, True]


def test_a_gradient_is_added_to_one_that_is_there(write: Write) -> None:
    case = write("h0 = mul(x0, p0)", parameters=[Parameter("p0", (2, 3), 0)])
    before = execute(case, PLAIN)
    after = execute(replace(case, environment=replace(case.environment, existing_grad=True)), PLAIN)

    for key, seed in ((("primal", "x0.grad"), 90), (("parameter", "params['segment0.p0'].grad"), 70)):
        assert torch.equal(tensor(after, *key), tensor(before, *key) + values((2, 3), seed))


def test_a_gradient_that_never_comes_is_none(write: Write) -> None:
    """And not left out."""
    case = write(
        "h0 = sin(x0)",
        primals=[Primal("x0", GRAD), Primal("x1", GRAD, 2)],
        parameters=[Parameter("p0", (3,), 0)],
        changes={0: {"args": (Name("x0"), Name("x1"))}},
    )
    record = execute(case, PLAIN)

    assert record.tensors["primal", "x1.grad"] is None
    assert record.tensors["parameter", "params['segment0.p0'].grad"] is None


def test_what_requires_no_grad_has_no_gradient_to_compare(write: Write) -> None:
    primals = [Primal("x0", GRAD), Primal("x1", Spec((2, 3)), 2)]
    case = write("h0 = mul(x0, x1)", primals=primals, parameters=[Parameter("p0", (3,), 0, trainable=False)])
    roles = {(role, leaf) for role, leaf in execute(case, PLAIN).tensors if role in ("primal", "parameter")}

    assert roles == {("primal", "x0.grad")}


@pytest.mark.parametrize("layout", ["view", "expanded-view", "computed"])
def test_the_gradient_of_a_non_leaf_is_read_from_its_leaf(write: Write, layout: Any) -> None:
    record = execute(write("h0 = sin(x0)", primals=[Primal("x0", GRAD, layout=layout)]), PLAIN)

    assert tensor(record, "primal", "root_x0.grad").count_nonzero() > 0
    assert ("primal", "x0.grad") not in record.tensors


def test_only_the_first_of_two_leaves_in_one_memory_receives_its_gradient(write: Write) -> None:
    primals = [Primal("x0", GRAD), Primal("x1", GRAD, 2, share="x0")]
    record = execute(write("h0 = mul(x0, x1)", primals=primals), PLAIN)

    assert torch.equal(tensor(record, "primal", "x0.grad"), values((2, 3), 11) * tensor(record, "input", "x1"))
    assert torch.equal(tensor(record, "primal", "x1.grad"), values((2, 3), 11) * tensor(record, "input", "x0"))


def test_autocast_is_around_the_forward_only(write: Write) -> None:
    seen: list[bool] = []

    def call(function: Any, *args: Any) -> Any:
        seen.append(torch.is_autocast_enabled("cpu"))
        output = function(*args)
        output.register_hook(lambda _: seen.append(torch.is_autocast_enabled("cpu")))
        return output

    record = execute(write("h0 = linear(x0)", autocast="bfloat16"), subject(call))

    assert seen == [True, False]
    assert tensor(record, "output", "outputs").dtype == torch.bfloat16


def test_a_program_in_float64_is_in_float64_throughout(write: Write) -> None:
    case = write(
        ["h0 = square_linear(x0)", "h1 = mul(h0, p0)"],
        primals=[Primal("x0", Spec((2, 3), "float64", requires_grad=True))],
        parameters=[Parameter("p0", (3,), 0)],
        dtype="float64",
    )

    assert {t.dtype for t in execute(case, PLAIN).tensors.values() if t is not None and t.is_floating_point()} == {
        torch.float64
    }


def test_a_parameter_can_be_changed_before_the_backward(write: Write) -> None:
    case = write("h0 = mul(x0, p0)", parameters=[Parameter("p0", (2, 3), 0)])
    found: list[Tensor] = []

    def call(function: Any, x: Tensor) -> Any:
        output = function(x)
        output.register_hook(lambda _: found.append(function.p0.detach().clone()))
        return output

    for changes in (False, True):
        execute(replace(case, environment=replace(case.environment, changes_parameter=changes)), subject(call))

    assert torch.equal(found[0] * 1.5, found[1])


# hooks ------------------------------------------------------------------------------------------------------------------


def firings(record: Record) -> dict[str, int]:
    return {leaf: count for (_, leaf, aspect), count in record.facts.items() if aspect == "firings"}


MODEL = {"parameters": [Parameter("p0", (2, 3), 0)]}


@pytest.mark.parametrize(
    ("hook", "leaf"),
    [
        ("input", "x0.register_hook"),
        ("parameter", "params['segment0.p0'].register_hook"),
        ("post-accumulate", "params['segment0.p0'].register_post_accumulate_grad_hook"),
        ("forward", "segment0.register_forward_hook"),
        ("backward", "segment0.register_full_backward_hook"),
    ],
)
def test_the_firings_of_a_hook_are_counted(write: Write, hook: Any, leaf: str) -> None:
    once = execute(write("h0 = mul(x0, p0)", hooks=(hook,), **MODEL), PLAIN)
    twice = execute(write("h0 = mul(x0, p0)", hooks=(hook,), schedule="F00", **MODEL), PLAIN)

    assert firings(once) == {leaf: 1}
    assert firings(twice) == {leaf: 1 if hook == "forward" else 2}


def test_hooks_of_every_sort_go_together(write: Write) -> None:
    every = ("input", "parameter", "post-accumulate", "forward", "backward")

    assert len(firings(execute(write("h0 = mul(x0, p0)", hooks=every, **MODEL), PLAIN))) == 5


def test_each_segment_has_its_own_module_hooks(write: Write) -> None:
    found = firings(execute(write("h0 = sin(x0)", "h1 = tanh(h0)", hooks=("forward", "backward")), PLAIN))

    assert found == {
        f"segment{i}.register_{what}_hook": 1 for i in range(2) for what in ("forward", "full_backward")
    }  # fmt: skip


@pytest.mark.parametrize("hook", ["parameter", "post-accumulate"])
def test_a_hook_that_changes_a_gradient_shows_if_it_is_skipped(write: Write, hook: Any) -> None:
    """It halves what it sees."""
    leaf = "params['segment0.p0'].grad"
    without = tensor(execute(write("h0 = mul(x0, p0)", **MODEL), PLAIN), "parameter", leaf)

    assert torch.equal(
        tensor(execute(write("h0 = mul(x0, p0)", hooks=(hook,), **MODEL), PLAIN), "parameter", leaf), without / 2
    )


def test_hooks_on_what_receives_nothing_do_not_raise(write: Write) -> None:
    """A full backward hook joins all outputs of a module, so a gradient of nothing at all reaches its parameters."""
    case = write(
        ["h0 = sin(x0)", "h1 = mlp(x0)"],
        cotangents=[Cotangent(0, "[0]")],
        hooks=("input", "parameter", "post-accumulate", "forward", "backward"),
    )

    assert execute(case, PLAIN).raised is None


def test_leaves_whose_gradients_autograd_leaves_in_one_memory_are_not_confused(write: Write) -> None:
    """Of two scalars that are joined, from an expanded cotangent: the engine hands both leaves the same element."""

    def run(**environment: Any) -> tuple[Tensor, Tensor]:
        case = write(
            "h0 = hstack(x0, p0)",
            primals=[Primal("x0", Spec((), requires_grad=True))],
            parameters=[Parameter("p0", (), 0)],
            cotangents=[Cotangent(0, "", layout="expanded")],
            **environment,
        )
        record = execute(case, PLAIN)
        return tensor(record, "primal", "x0.grad"), tensor(record, "parameter", "params['segment0.p0'].grad")

    once, _ = run()
    assert run(hooks=("post-accumulate",)) == (once, once / 2)
    twice, also_twice = run(schedule="F00")
    assert twice == also_twice == once + values((1,), 101).squeeze()
