"""The local check names the node whose rule is wrong, from one run, and says where it cannot tell."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import gradcheck_plus as gp


def run(function: Any, *inputs: Any) -> Any:
    """Call a Function."""
    return function.apply(*inputs)


class Swish(torch.autograd.Function):
    """Right."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.scale = scale
        return scale * x * x.sigmoid()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        return grads[0] * ctx.scale * (s + x * s * (1 - s)), None


class WrongSwish(Swish):
    """Forgets a factor."""

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        return grads[0] * ctx.scale * (s + x * s), None


def leaf(*shape: int, seed: int = 0) -> Tensor:
    """Return random values that require grad."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


class Block(nn.Module):
    """A transformer's layer that calls a Function."""

    def __init__(self, function: type[torch.autograd.Function]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.function, self.layer, self.last = function, nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.last(run(self.function, self.layer(x), 2.0))
        return found


def checked(model: Any, *inputs: Tensor) -> dict[str, list[str]]:
    """Return the names of the nodes by verdict."""
    with gp.record_forward() as forward:
        loss = model(*inputs).sum()
    found: dict[str, list[str]] = {"match": [], "fault": [], "inconclusive": []}
    for check in gp.record_backward(loss, forward=forward).check():
        found[check.verdict].append(check.node)
    return found


def only(function: Any, *inputs: Any) -> gp.NodeCheck:
    """Return the check of the one node that a call makes."""
    with gp.record_forward() as forward:
        output = function(*inputs)
    return gp.record_backward(output, torch.ones_like(output), forward=forward).nodes[0].check()


def test_a_wrong_function_in_a_model_is_named_and_nothing_else() -> None:
    assert checked(Block(WrongSwish), leaf(3, 2, 8))["fault"] == ["WrongSwishBackward"]


def test_where_all_is_right_every_node_matches() -> None:
    found = checked(Block(Swish), leaf(3, 2, 8))

    assert found["fault"] == found["inconclusive"] == []
    assert "SwishBackward" in found["match"]


def test_it_is_named_in_a_non_reentrant_checkpoint_too() -> None:
    found = checked(lambda x: checkpoint(Block(WrongSwish), x, use_reentrant=False), leaf(3, 2, 8))

    assert found["fault"] == ["WrongSwishBackward"]


def test_a_reentrant_checkpoint_is_not_judged_and_adds_to_no_gradient() -> None:
    """Its backward runs another one, which accumulates."""
    layer = nn.Linear(4, 4).double()
    with gp.record_forward() as forward:
        loss = checkpoint(layer, leaf(2, 4).double(), use_reentrant=True).sum()
    recording = gp.record_backward(loss, forward=forward)
    before = [p.grad.clone() for p in layer.parameters() if p.grad is not None]
    check = next(node for node in recording if node.name == "CheckpointFunctionBackward").check()

    assert check.reason.startswith("it is given a function to call")
    assert [p.grad.tolist() for p in layer.parameters() if p.grad is not None] == [grad.tolist() for grad in before] != []


def test_a_fault_says_what_differs_and_where_it_was_called() -> None:
    check = only(lambda x: run(WrongSwish, x, 2.0), leaf(4))

    assert check.reason.startswith("along a random direction of tensor input 0, differences give ")
    assert "test_checking.py:" in (check.source or "")


def test_a_rule_that_is_right_for_the_cotangents_of_this_backward_only_is_wrong() -> None:
    class Ignoring(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x.cos())
            return x.sin()

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return ctx.saved_tensors[0]

    assert only(Ignoring.apply, leaf(4)).verdict == "fault"


def test_a_rule_that_takes_every_gradient_for_contiguous_is_wrong() -> None:
    class Flat(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return torch.mul(x, 2)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return 2 * grads[0].as_strided(grads[0].shape, (1,))

    check = only(Flat.apply, leaf(4))

    assert check.verdict == "fault"
    assert check.reason == "for the same cotangent with other strides, its backward gives tensor input 0 another gradient"


def test_a_gradient_that_is_lost_is_wrong() -> None:
    class Losing(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
            return x + y

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0], None

    assert only(Losing.apply, leaf(4), leaf(4)).reason.endswith("its backward None")


@pytest.mark.parametrize("operation", [torch.relu, lambda x: x.amax(0), lambda x: x.clamp(min=0)])
def test_at_a_kink_the_rule_is_judged_close_by(operation: Any) -> None:
    check = only(operation, torch.zeros(5, requires_grad=True))

    assert (check.verdict, "close by" in check.reason) == ("match", True)


@pytest.mark.parametrize("operation", [lambda x: x.sin_(), lambda x: x.add_(1), lambda x: x.relu_()])
def test_an_operation_that_writes_into_its_input_is_checked(operation: Any) -> None:
    assert only(lambda x: operation(x * 2), leaf(4)).verdict == "match"


def test_constants_that_are_infinite_are_no_fault() -> None:
    mask = torch.tensor([0.0, -torch.inf, 0.0])

    assert checked(lambda x: (x + mask).softmax(-1), leaf(2, 3))["match"] == [
        "SumBackward0",
        "SoftmaxBackward0",
        "AddBackward0",
    ]


class Drawing(torch.autograd.Function):
    """Draws random numbers."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mask = torch.rand_like(x) > 0.5
        drawn: Tensor = x * ctx.mask
        return drawn

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * ctx.mask


class Narrow(torch.autograd.Function):
    """Computes in float32 whatever it is given."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return torch.add(x.float(), x.float())

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * 2


class Failing(Swish):
    """Cannot do float64."""

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if grads[0].dtype == torch.float64:
            raise TypeError("no float64 here")
        return grads[0], None


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (Drawing.apply, "its forward gives other values when it is run again"),
        (Narrow.apply, "its forward computes in torch.float32 where its inputs are float64"),
        (lambda x: run(Failing, x, 1.0), "its backward raises TypeError when it is run again: no float64 here"),
        (lambda x: torch.rrelu(x.repeat(9), training=True), "its forward gives other values when it is run again"),
        (lambda x: torch.view_as_complex(x.view(2, 2)), "it is complex"),
    ],
)
def test_what_cannot_be_told_has_its_reason(function: Any, reason: str) -> None:
    check = only(function, leaf(4))

    assert check.verdict == "inconclusive"
    assert check.reason.startswith(reason)


def test_what_was_changed_since_is_not_judged() -> None:
    x = leaf(4)
    with gp.record_forward() as forward:
        y = x * 2
        z = y.sin()
    recording = gp.record_backward(z.sum(), forward=forward)
    with torch.no_grad():
        y.zero_()

    assert "changed in place since" in recording.nodes[1].check().reason


def test_without_a_recorded_forward_nothing_is_judged() -> None:
    checks = gp.record_backward(leaf(4).sin().sum()).check()

    assert {check.verdict for check in checks} == {"inconclusive"}
    assert "record_forward" in checks[0].reason


def test_a_leaf_has_no_rule() -> None:
    assert gp.record_backward(leaf(4).sum()).nodes[-1].check().verdict == "inconclusive"


def test_a_check_leaves_random_numbers_and_gradients_alone() -> None:
    x = leaf(4)
    with gp.record_forward() as forward:
        loss = run(Drawing, x).sum()
    recording = gp.record_backward(loss, forward=forward)
    state, grad = torch.get_rng_state(), x.grad.clone()  # type: ignore[union-attr]
    recording.check()

    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(x.grad, grad)  # type: ignore[arg-type]
