"""torch's private names do on the installed torch what `gradcheck_plus.compat` says of them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from gradcheck_plus import compat, support

#: It has no annotations: it is printed into repros, which a person reads.
values: Callable[..., Tensor] = support.values


def test_the_installed_torch_is_one_that_they_were_seen_to_work_on() -> None:
    """If every law below holds on a new release, add it."""
    assert torch.__version__.startswith(compat.SEEN_ON)


def test_stage_backward_returns_the_gradients_of_the_inputs() -> None:
    """And adds to those of parameters. Whether it clears the former is for `torch-known.toml` to say."""
    x, w = (values((2, 3), seed).requires_grad_() for seed in (1, 2))
    output, cotangent = x * w, values((2, 3), 11)
    found = compat.stage_backward((output,), (cotangent,), [x])

    assert isinstance(found, tuple)
    assert [None if g is None else g.tolist() for g in found] == [(cotangent * w).tolist()]
    assert torch.equal(w.grad, cotangent * x)  # type: ignore[arg-type]


@pytest.mark.parametrize("reentrant", [True, False])
def test_it_is_seen_which_of_torchs_checkpoints_ran(reentrant: bool) -> None:
    def call(function: Any, *args: Any) -> Any:
        return checkpoint(function, *args, use_reentrant=reentrant)

    assert compat.builds_on_checkpoint(call, torch.sin, torch.ones(2, requires_grad=True)) is reentrant


def test_it_is_seen_that_none_ran() -> None:
    assert compat.builds_on_checkpoint(lambda f, x: f(x), torch.sin, torch.ones(2)) is None


def test_watching_ends_with_the_call() -> None:
    """Also where it raises."""
    import sys

    before = sys.getprofile()
    with pytest.raises(ZeroDivisionError):
        compat.builds_on_checkpoint(lambda f: 1 / 0, torch.sin)

    assert sys.getprofile() is before


class Watch(compat.TorchDispatchMode):
    """Notes of every operation its name, whether it is tagged as random, whether it writes, and its arguments."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: dict[str, tuple[bool, bool, dict[str, Any]]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = compat.arguments(func, args, kwargs or {})
        random = torch.Tag.nondeterministic_seeded in func.tags
        self.seen[compat.operation_name(func)] = random, compat.changes_operand(func), named
        return func(*args, **(kwargs or {}))


def test_a_dispatch_mode_sees_what_is_drawn() -> None:
    """By the tag of the operation."""
    with Watch() as watch:
        torch.ones(2).sin().bernoulli_(0.25)
        torch.rand(2)

    found = {name: seen[:2] for name, seen in watch.seen.items()}
    assert found == {"ones": (False, False), "sin": (False, False), "bernoulli_": (True, True), "rand": (True, False)}


def test_it_sees_arguments_by_name_and_defaults_too() -> None:
    with Watch() as watch:
        torch.native_dropout(torch.ones(2), 0.5, train=True)
        torch.ones(2).bernoulli_()

    dropout, bernoulli = (watch.seen[name][2] for name in ("native_dropout", "bernoulli_"))
    assert (dropout["p"], dropout["train"]) == (0.5, True)
    assert bernoulli["p"] == 0.5


#: What CUDA draws from, by the argument without which it draws nothing; a CPU has none of them, but knows that they are.
ON_CUDA = {
    "native_dropout": "p",
    "_cudnn_rnn": "dropout",
    "_scaled_dot_product_cudnn_attention": "dropout_p",
    "_scaled_dot_product_efficient_attention": "dropout_p",
    "_scaled_dot_product_flash_attention": "dropout_p",
    "_scaled_dot_product_fused_attention_overrideable": "dropout_p",
}


@pytest.mark.parametrize(("name", "probability"), ON_CUDA.items())
def test_what_draws_on_cuda_is_there_under_its_name(name: str, probability: str) -> None:
    operation = getattr(torch.ops.aten, name).default

    assert torch.Tag.nondeterministic_seeded in operation.tags
    assert compat.operation_name(operation) == name
    assert probability in [a.name for a in operation._schema.arguments]


def test_tensors_of_a_tree_can_be_mapped() -> None:
    tree = {"a": (torch.ones(2), None), "b": [3, "text"]}
    doubled = compat.map_tensors(lambda t: t * 2, tree)

    assert isinstance(doubled["a"][0], Tensor)
    assert doubled["a"][0].tolist() == [2, 2]
    assert (doubled["a"][1], doubled["b"]) == (None, [3, "text"])


def test_deterministic_mode_hands_out_memory_filled_with_nan() -> None:
    """Which is how memory that was never written is seen."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        assert torch.empty(64).isnan().all()
    finally:
        torch.use_deterministic_algorithms(False)


# the nodes of an autograd graph -----------------------------------------------------------------------------------------


class Twice(torch.autograd.Function):
    """Two outputs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, materialise: bool) -> Any:
        ctx.set_materialize_grads(materialise)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[1], None


#: As one who bound it before anybody watched.
twice: Callable[..., Any] = Twice.apply


def test_in_a_dispatch_mode_the_last_node_is_that_of_the_operation() -> None:
    numbers = []

    class Note(compat.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            numbers.append(compat.last_sequence_number())
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, requires_grad=True)
    with Note():  # type: ignore[no-untyped-call]
        y = x.sin()
        z = y.cos()

    assert numbers == [compat.sequence_number(y.grad_fn), compat.sequence_number(z.grad_fn)]


def test_a_node_knows_what_gradients_it_expects() -> None:
    first, _ = twice(torch.ones(2, 3, requires_grad=True), True)

    assert compat.expected_gradients(first.grad_fn) == [((2, 3), torch.float32, torch.device("cpu"))] * 2


def test_a_node_of_a_function_knows_it_and_runs_its_backward() -> None:
    first, _ = twice(torch.ones(2, requires_grad=True), True)
    gradients = torch.ones(2), torch.full((2,), 5.0)

    assert compat.forward_class(first.grad_fn) is Twice
    assert compat.forward_class(first.sum().grad_fn) is None
    assert compat.run_backward_of(first.grad_fn, gradients) == (gradients[1], None)


@pytest.mark.parametrize("materialise", [True, False])
def test_it_is_seen_whether_a_function_gets_zeros_for_none(materialise: bool) -> None:
    first, _ = twice(torch.ones(2, requires_grad=True), materialise)
    with compat.materialising([first.grad_fn]) as seen:
        first.sum().backward(retain_graph=True)
    first.sum().backward()

    assert seen == {first.grad_fn: materialise}
    assert "apply" not in vars(first.grad_fn)


def test_what_a_node_saved_is_seen_without_running_its_unpack_hook() -> None:
    unpacked: list[Tensor] = []
    x = torch.ones(2, requires_grad=True)

    def unpack(saved: Tensor) -> Tensor:
        unpacked.append(saved)
        return saved

    plain = x.sin()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        hooked = x.sin()

    ((found, packed),) = compat.saved_tensors(plain.grad_fn, "self") or []
    ((_, packed_by_hook),) = compat.saved_tensors(hooked.grad_fn, "self") or []
    assert (found is x, packed, packed_by_hook) == (True, False, True)
    assert compat.saved_tensors(plain.grad_fn, "other") is None
    assert unpacked == []


def test_the_hooks_of_a_leaf_come_in_the_order_in_which_they_run() -> None:
    x = torch.ones(2, requires_grad=True)
    after, before = print, abs
    x.register_post_accumulate_grad_hook(after)
    x.register_hook(before)

    assert compat.hooks_of_leaf(x) == [before, after]


def test_calls_of_functions_are_seen_also_where_apply_was_bound_before() -> None:
    seen: list[Any] = []
    x = torch.ones(2, requires_grad=True)
    with compat.calls_of_functions(lambda function, args, _: seen.append((function, args[1]))):
        twice(x, True)
        with compat.calls_of_functions(lambda function, *_: seen.append(function)):
            twice(x, False)
    twice(x, True)

    assert seen == [(Twice, True), (Twice, False), Twice]
