"""Where two runs part first is named: the node, the operation, the value, the statement."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import gradcheck_plus as gp
from gradcheck_plus.compat import stage_backward


class Swish(torch.autograd.Function):
    """A correct Function."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        return grads[0] * s * (1 + x * (1 - s))


class WrongSwish(Swish):
    """Forgets a term."""

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * ctx.saved_tensors[0].sigmoid()


class Model(nn.Module):
    """Three transformer layers, whose activations are Functions."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, activation=self.activation(n), batch_first=True)
            for n in range(3)
        )
        self.broken = False

    def activation(self, number: int) -> Callable[[Tensor], Tensor]:
        def run(x: Tensor) -> Tensor:
            return applied(WrongSwish if self.broken and number == 1 else Swish, x)

        return run

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def applied(function: Any, *args: Any) -> Tensor:
    out: Tensor = function.apply(*args)
    return out


@pytest.fixture
def model() -> Model:
    return Model()


def broken(model: Model, run: Callable[[Model], Tensor | None]) -> Tensor | None:
    """Run, backward included, while one Function is wrong."""
    model.broken = True
    try:
        loss = run(model)
        if loss is not None:
            loss.backward()
    finally:
        model.broken = False
    return None


def leaf() -> Tensor:
    return torch.linspace(-1, 1, 2 * 5 * 16).reshape(2, 5, 16).requires_grad_()


def plain(model: Model) -> Tensor:
    out: Tensor = model(leaf())
    return out.square().mean()


def checkpointed(model: Model, **options: Any) -> Tensor:
    x = leaf()
    for layer in model.layers:
        x = checkpoint(layer, x, **options)
    return x.square().mean()


def staged(model: Model) -> None:
    """Run each layer as a stage on its own leaf, and their backwards by hand."""
    out, stages = leaf(), []
    for layer in model.layers:
        x = out.detach().requires_grad_()
        out = layer(x)
        stages.append((x, out))
    grad: Tensor | None
    (grad,) = torch.autograd.grad(out.square().mean(), out, retain_graph=True)
    for x, out in reversed(stages):
        (grad,) = stage_backward((out,), (grad,), [x])


RUNS: dict[str, Callable[[Model], Tensor | None]] = {
    "plain": plain,
    "non-reentrant": lambda model: checkpointed(model, use_reentrant=False),
    "reentrant": lambda model: checkpointed(model, use_reentrant=True),
    "stages": staged,
}


@pytest.fixture(autouse=True)
def same_random_numbers() -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        yield


def parting(reference: Callable[[], Any], subject: Callable[[], Any]) -> gp.Divergence:
    found = gp.first_divergence(reference, subject)
    assert found is not None
    return found


@pytest.mark.parametrize("name", RUNS)
def test_nothing_is_said_of_a_correct_run(name: str, model: Model) -> None:
    assert gp.first_divergence(lambda: plain(model), lambda: RUNS[name](model)) is None


@pytest.mark.parametrize("name", RUNS)
def test_a_wrong_function_within_a_transformer_is_named_exactly(name: str, model: Model) -> None:
    found = parting(lambda: plain(model), lambda: broken(model, RUNS[name]))

    assert (found.kind, found.direction, found.node) == ("incoming-differs", "backward", "WrongSwishBackward")
    assert "(module 'layers.1')" in found.message


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_recompute_that_draws_other_numbers_is_told_by_the_value_that_differs_first(
    reentrant: bool,
    model: Model,
) -> None:
    found = parting(lambda: plain(model), lambda: checkpointed(model, use_reentrant=reentrant, preserve_rng_state=False))

    assert (found.kind, found.direction, found.node) == ("recompute-differs", "forward", "aten.bernoulli_.float")
    assert "(module 'layers.2" in found.message, "the last layer is recomputed first"


def test_a_recompute_in_evaluation_mode_is_told_with_the_module_and_the_mode(model: Model) -> None:
    def run() -> None:
        loss = checkpointed(model.train(), use_reentrant=True)
        model.eval()
        loss.backward()

    found = parting(lambda: plain(model), run)

    assert found.kind == "recompute-differs"
    assert "runs in evaluation mode" in found.message


def test_a_recompute_outside_autocast_is_told_with_what_it_runs_under() -> None:
    class Forgetful(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, layer: Any, x: Tensor) -> Tensor:
            ctx.layer = layer
            ctx.save_for_backward(x)
            out: Tensor = layer(x)
            return out

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            x = ctx.saved_tensors[0].detach().requires_grad_()
            with torch.enable_grad():
                out = ctx.layer(x)
            torch.autograd.backward([out], [grads[0].to(out.dtype)])
            return None, x.grad

    layer = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    x = torch.linspace(-1, 1, 8).reshape(2, 4).requires_grad_()

    def run(call: Callable[[Tensor], Tensor]) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return call(x).float()

    found = parting(lambda: run(layer), lambda: run(lambda x: applied(Forgetful, layer, x)))

    assert found.kind == "recompute-differs"
    assert found.message.endswith("the module runs without autocast there")


@pytest.mark.parametrize("reentrant", [False, True])
def test_an_input_that_is_changed_before_the_recompute_is_the_value_that_differs(reentrant: bool) -> None:
    layer = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))

    def run(*, change: bool) -> None:
        x = torch.linspace(-1, 1, 8).reshape(2, 4).requires_grad_()
        loss = checkpoint(layer, x, use_reentrant=reentrant).sum()
        if change:
            x.data.mul_(2)
        loss.backward()

    found = parting(lambda: run(change=False), lambda: run(change=True))

    assert found.kind == "recompute-differs"
    assert "the value of tensor input 1 that goes into addmm" in found.message


def test_a_module_called_again_is_told_apart_though_it_is_recomputed_in_reverse() -> None:
    layer = nn.Linear(4, 4)

    def run(*, cut: bool) -> Tensor:
        x = torch.linspace(-1, 1, 8).reshape(2, 4).requires_grad_()
        for turn in range(3):
            x = checkpoint(layer, x, use_reentrant=True)
            if cut and turn == 1:
                x.register_hook(lambda grad: grad * 2)
        return x.sum()

    assert gp.first_divergence(lambda: run(cut=False), lambda: run(cut=False)) is None
    found = parting(lambda: run(cut=False), lambda: run(cut=True))
    assert "twice what is expected" in found.message


@pytest.mark.parametrize(
    ("scale", "words"), [(2.0, "twice what is expected"), (0.5, "half of what is expected"), (0.0, "zeros")]
)
def test_a_function_of_the_subject_that_hands_on_another_gradient_is_named(scale: float, words: str) -> None:
    class Boundary(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.view_as(x)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] * scale

    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    x = torch.linspace(-1, 1, 8).reshape(2, 4).requires_grad_()
    found = parting(lambda: second(first(x)).sum(), lambda: second(applied(Boundary, first(x))).sum())

    assert (found.kind, found.node) == ("incoming-differs", "BoundaryBackward")
    assert words in found.message


def test_a_gradient_that_never_comes_is_told_at_the_first_node_without_it() -> None:
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    x = torch.linspace(-1, 1, 8).reshape(2, 4).requires_grad_()
    found = parting(lambda: second(first(x)).sum(), lambda: second(first(x).detach()).sum())

    assert (found.kind, found.node) == ("gradient-missing", "AddmmBackward0")


def test_a_parameter_whose_grad_is_overwritten_is_told_though_every_node_agrees() -> None:
    layer = nn.Linear(4, 4)
    x = torch.linspace(-1, 1, 8).reshape(2, 4)

    def run(*, assign: bool) -> None:
        for _ in range(2):
            before = layer.weight.grad
            layer(x).sum().backward()
            if assign and before is not None:
                layer.weight.grad = torch.ones_like(layer.weight)

    found = parting(lambda: run(assign=False), lambda: run(assign=True))

    assert found.kind == "accumulation-differs"
    assert "weight.grad is right, but not what it is in the end" in found.message


def test_what_a_node_saved_and_somebody_changed_unseen_is_told_as_its_rule() -> None:
    x = torch.linspace(-1, 1, 8).requires_grad_()

    def run(*, change: bool) -> None:
        out = x.exp()
        loss = out.sum()
        if change:
            out.data.mul_(0.1)
        loss.backward()

    found = parting(lambda: run(change=False), lambda: run(change=True))

    assert (found.kind, found.node) == ("rule-differs", "ExpBackward0")
    assert found.source_line == "out = x.exp()"


def test_a_second_derivative_that_is_wrong_is_told_with_the_function_that_ran() -> None:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.slope = 3 * x.detach() ** 2
            return x**3

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] * ctx.slope

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    scale = torch.tensor(2.0, requires_grad=True)

    def run(cube: Callable[[Tensor], Tensor]) -> None:
        (slope,) = torch.autograd.grad((scale * cube(x)).sum(), x, create_graph=True)
        torch.autograd.grad((slope * x.square()).sum(), x)

    found = parting(lambda: run(lambda x: x**3), lambda: run(lambda x: applied(Cube, x)))

    assert (found.kind, found.node) == ("result-differs", "CubeBackward")


def test_a_function_that_raises_in_its_backward_is_named_with_its_line() -> None:
    class Raising(Swish):
        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            raise ValueError("not for these")

    x = torch.linspace(-1, 1, 8).requires_grad_()
    found = parting(lambda: applied(Swish, x).sum(), lambda: applied(Raising, x).sum())

    assert (found.kind, found.node) == ("raises", "RaisingBackward")
    assert found.source_line == 'raise ValueError("not for these")'


def test_what_both_raise_is_raised() -> None:
    def run() -> None:
        raise ValueError("no data")

    with pytest.raises(ValueError, match="no data"):
        gp.first_divergence(run, run)


def test_gradients_that_are_there_stay_and_count_for_nothing() -> None:
    layer = nn.Linear(2, 2)
    layer.weight.grad = torch.full((2, 2), 7.0)
    x = torch.ones(1, 2)

    assert gp.first_divergence(lambda: layer(x), lambda: checkpoint(layer, x, use_reentrant=False)) is None
    assert torch.equal(layer.weight.grad, torch.full((2, 2), 7.0))
    assert layer.bias.grad is None


def test_recordings_of_one_backward_are_compared_by_their_figures() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    first = gp.record_backward(model(x).sum(), names=model)
    assert gp.first_divergence(first, gp.record_backward(model(x).sum(), names=model)) is None

    tripled = gp.first_divergence(first, gp.record_backward(3 * model(x).sum(), names=model))
    assert tripled is not None
    assert (tripled.kind, tripled.node) == ("incoming-differs", "MulBackward0")


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (3, "`run`=3 is neither a recording nor callable"),
        (lambda: torch.ones(2), "no tensor that requires grad, and ran no backward"),
        (lambda: None, "returned NoneType with no tensor"),
    ],
)
def test_what_cannot_be_compared_is_refused(run: Any, message: str) -> None:
    with pytest.raises(gp.InvalidArgument, match=message):
        gp.first_divergence(run, run)


def test_a_residual_around_a_reentrant_checkpoint_is_one_leaf_though_it_has_no_name() -> None:
    """The inner graph has a leaf of its own for the input, which gets a part of its gradient only."""
    layer, x = nn.Linear(4, 4), torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()

    assert gp.first_divergence(lambda: layer(x) + x, lambda: checkpoint(layer, x, use_reentrant=True) + x) is None


def test_the_workspace_of_a_kernel_is_no_value() -> None:
    layer, x = nn.LSTM(4, 4), torch.linspace(-1, 1, 24).reshape(2, 3, 4).requires_grad_()

    assert gp.first_divergence(lambda: layer(x)[0], lambda: layer(x)[0]) is None


def test_gradients_that_are_put_there_by_hand_count() -> None:
    layer, x = nn.Linear(4, 4), torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()

    def by_hand() -> None:
        layer.weight.grad, layer.bias.grad = torch.autograd.grad(layer(x).sum(), [layer.weight, layer.bias])

    assert gp.first_divergence(lambda: layer(x).sum(), by_hand) is None


def test_a_backward_that_is_run_for_something_else_is_not_that_of_what_is_returned() -> None:
    layer, x = nn.Linear(4, 4), torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()

    def penalised(*, wrong: bool) -> Tensor:
        (slope,) = torch.autograd.grad(layer(x).sum(), x)
        out: Tensor = layer(x)
        return (out.detach() if wrong else out).sum() + (out * slope.sum()).sum()

    assert gp.first_divergence(lambda: penalised(wrong=False), lambda: penalised(wrong=False)) is None
    assert gp.first_divergence(lambda: penalised(wrong=False), lambda: penalised(wrong=True)) is not None


def test_a_sparse_gradient_that_differs_is_told() -> None:
    table, index = nn.Embedding(9, 4, sparse=True), torch.tensor([1, 3])

    def tripled() -> Tensor:
        out: Tensor = table(index)
        out.register_hook(lambda grad: 3 * grad)
        return out.sum()

    assert parting(lambda: table(index).sum(), tripled).direction == "backward"


def test_runs_with_nothing_in_common_are_refused() -> None:
    layer, x = nn.Linear(4, 4), torch.linspace(-1, 1, 12).reshape(3, 4)

    with pytest.raises(gp.InvalidArgument, match="of which none correspond"):
        gp.first_divergence(lambda: layer(x), lambda: torch.ones(2, requires_grad=True).exp())
