"""A node that is run again alone returns what it returned in the backward."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import gradcheck_plus as gp
from gradcheck_plus.graph import Node


def run(function: Any, *inputs: Any) -> Any:
    """Call a Function."""
    return function.apply(*inputs)


class Parts(torch.autograd.Function):
    """Two outputs, an input that needs no gradient, and a gradient that is wider than its input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, flag: str, constant: Tensor, bias: Tensor) -> Any:
        ctx.save_for_backward(x)
        return x * x + bias, constant * x

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (x,) = ctx.saved_tensors
        left, right = grads
        return 2 * left * x + right, None, right, left


class Sparing(torch.autograd.Function):
    """Sees None where no gradient came."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        left, right = grads
        parts = [factor * grad for factor, grad in ((2, left), (3, right)) if grad is not None]
        return sum(parts[1:], parts[0])


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


def leaf(*shape: int, seed: int = 0) -> Tensor:
    """Return random values that require grad."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def pointwise() -> Tensor:
    """Return a sum over many pointwise operations."""
    x, y = leaf(3, 4), leaf(3, 4, seed=1)
    p, b = x.sigmoid(), (y * 0.3).tanh()
    terms = [x.exp(), p.log(), p.sqrt(), p.rsqrt(), x.sin(), x.cos(), b.tan(), b.asin(), b.acos(), x.atan(), x.sinh(), x.cosh()]
    terms += [b.atanh(), x.asinh(), (p + 1.5).acosh(), x.abs(), p.log1p(), x.expm1(), p.log2(), p.log10(), x.exp2(), x.erf()]
    terms += [
        x.relu(),
        F.gelu(x),
        F.silu(x),
        F.elu(x),
        F.softplus(x),
        F.leaky_relu(x),
        F.hardswish(x),
        F.hardtanh(x),
        F.mish(x),
    ]
    terms += [x / p, x - y, x.pow(3), p.pow(y), x.maximum(y), x.minimum(y), torch.atan2(x, y), x.lerp(y, 0.3), -x, 1 / p]
    terms += [x.clamp(-1, 1), x.clamp(max=0.5), x.where(x > 0, y), x.masked_fill(y > 0, 0), x.addcmul(y, p), x.addcdiv(y, p)]
    terms += [x.fmod(1.5), x.erfc(), p.lgamma(), p.digamma(), F.logsigmoid(x), F.hardsigmoid(x), F.prelu(x, leaf(1, seed=2))]
    return torch.stack([t.sum() for t in terms]).sum()


def shaped() -> Tensor:
    """Return a sum over views, reductions, indexing, joining and linear algebra."""
    x, y, square = leaf(3, 4), leaf(4, 5, seed=1), leaf(3, 3, seed=2)
    index = torch.tensor([2, 0])
    wide = torch.tensor([[0, 1, 1, 3], [3, 2, 1, 0], [1, 1, 1, 1]])
    terms = [
        x @ y,
        x.t(),
        x.reshape(2, 6),
        x.view(12),
        x.transpose(0, 1),
        x[None].expand(2, 3, 4),
        x.unsqueeze(1),
        x[1],
        x[:, 1:],
    ]
    terms += [x.permute(1, 0), x.flip(0), x.roll(1, 0), x.repeat(2, 1), torch.cat([x, x]), torch.stack([x, x]), *x.split(2, 1)]
    terms += [
        x.mean(),
        x.mean(1),
        x.sum(0),
        x.prod(),
        x.prod(1),
        x.norm(),
        x.var(),
        x.std(1),
        x.logsumexp(1),
        x.max(),
        x.amax(1),
    ]
    terms += [
        x.max(1).values,
        x.min(1).values,
        x.sort(1).values,
        x.topk(2, 1).values,
        x.cumsum(1),
        x.cumprod(1),
        x.median(1).values,
    ]
    terms += [x.index_select(0, index), x.gather(1, wide), x[index], x.masked_select(x > 0), x.tril(), x.triu(), x.diagonal()]
    terms += [
        x.scatter(1, wide, 0.5),
        x.index_add(0, index, x[:2]),
        x.unfold(1, 2, 1),
        x.as_strided((2, 2), (4, 1)),
        x.squeeze(),
    ]
    terms += [
        torch.logdet(square @ square.t() + torch.eye(3)),
        torch.linalg.inv(square),
        torch.linalg.det(square),
        x.softmax(1),
    ]
    terms += [
        x.log_softmax(1),
        torch.bmm(x[None], y[None]),
        x.clone(),
        x.double(),
        torch.einsum("ij,jk->k", x, y),
        x.unbind(0)[1],
    ]
    terms += [
        torch.cdist(x, x + 1),
        F.pad(x, (1, 1)),
        torch.baddbmm(leaf(1, 3, 5, seed=3), x[None], y[None]),
        x.mv(leaf(4, seed=4)),
    ]
    return torch.stack([t.sum().float() for t in terms]).sum()


def layers() -> Tensor:
    """Return a sum over layers, normalisations and losses."""
    torch.manual_seed(0)
    image, sequence, x = leaf(2, 4, 8, 8), leaf(2, 5, 8, seed=1), leaf(4, 6, seed=2)
    classes = torch.tensor([0, 1, 2, 3])
    terms = [nn.Conv2d(4, 3, 3)(image), F.max_pool2d(image, 2), F.avg_pool2d(image, 2), F.adaptive_avg_pool2d(image, 3)]
    terms += [nn.BatchNorm2d(4)(image), nn.GroupNorm(2, 4)(image), nn.LayerNorm(8)(sequence), nn.Embedding(5, 3)(classes)]
    terms += [
        F.interpolate(image, scale_factor=2),
        F.interpolate(image, scale_factor=2, mode="bilinear"),
        F.dropout(image, 0.5),
    ]
    terms += [nn.GRU(8, 4)(sequence)[0], nn.LSTM(8, 4)(sequence)[0], nn.TransformerEncoderLayer(8, 2, 16)(sequence)]
    terms += [
        F.cross_entropy(x, classes),
        F.mse_loss(x, x.detach() + 1),
        F.l1_loss(x, x.detach() + 1),
        F.smooth_l1_loss(x, 2 * x),
    ]
    terms += [
        F.huber_loss(x, x.detach() * 2),
        F.binary_cross_entropy(x.sigmoid(), x.detach().sigmoid()),
        F.kl_div(x, x.detach().exp(), reduction="sum"),
    ]
    terms += [
        F.binary_cross_entropy_with_logits(x, x.detach().sigmoid()),
        F.scaled_dot_product_attention(*(sequence[:, None],) * 3),
    ]
    terms += [F.pixel_shuffle(image, 2), F.unfold(image, 2), F.glu(x), F.embedding_bag(classes[None], leaf(5, 3, seed=3))]
    return torch.stack([t.sum() for t in terms]).sum()


def functions() -> Tensor:
    """Return a sum over Functions."""
    x, bias = leaf(3, 4), leaf(4, seed=1)
    both = run(Parts, x, "flag", torch.ones(3, 4), bias)
    one = run(Parts, x.sin(), "flag", torch.ones(3, 4), bias)[1]
    sparing = run(Sparing, x)[1]
    return torch.stack([t.sum() for t in (*both, one, sparing, run(Swish, x, 2.0))]).sum()


MODELS = (pointwise, shaped, layers, functions)


def same(found: Any, expected: Any) -> bool:
    """Are these the same bits, and None in the same places?"""
    pairs = zip(found, expected, strict=True)
    return all(a is b if a is None or b is None else a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs)


def replays_as_recorded(node: Node) -> bool:
    return same(node.replay(accumulate=True), node.returned_values)


@pytest.mark.parametrize("model", MODELS)
def test_every_node_replays_bit_for_bit(model: Callable[[], Tensor]) -> None:
    recording = gp.record_backward(model(), values=True, retain_graph=True)

    assert [node for node in recording if not replays_as_recorded(node)] == []


@pytest.mark.parametrize("model", MODELS)
def test_no_right_rule_is_found_wrong(model: Callable[[], Tensor]) -> None:
    """And most can be judged; a node of a fused recurrent layer, for one, cannot."""
    with gp.record_forward() as forward:
        loss = model()
    checks = gp.record_backward(loss, forward=forward).check()

    assert [check for check in checks if check.verdict == "fault"] == []
    assert sum(check.verdict == "match" for check in checks) > 0.8 * len(checks)


def test_the_models_have_at_least_eighty_kinds_of_node_functions_among_them() -> None:
    nodes = [node for model in MODELS for node in gp.record_backward(model())]

    assert len({node.name for node in nodes}) >= 80
    assert {node.kind for node in nodes} == {"torch", "function", "leaf"}


def test_other_gradients_can_be_given() -> None:
    x = leaf(3)
    node = gp.record_backward(x.sin().sum(), retain_graph=True).nodes[1]

    assert same(node.replay([torch.full((3,), 2.0)]), [2 * x.cos()])


def test_a_replay_fires_no_hook_and_leaves_gradients_alone() -> None:
    x, fired = leaf(3), []
    y = x.sin()
    recording = gp.record_backward(y.sum(), values=True, retain_graph=True)
    before = x.grad.clone()  # type: ignore[union-attr]
    y.grad_fn.register_hook(lambda *_: fired.append("node"))  # type: ignore[union-attr]
    recording.nodes[1].replay()

    assert fired == []
    assert torch.equal(x.grad, before)  # type: ignore[arg-type]


def test_a_node_that_accumulates_does_so_only_where_it_is_asked_to() -> None:
    x = leaf(3)
    node = gp.record_backward(x.sum(), names={"x": x}, values=True).nodes[-1]

    with pytest.raises(gp.InvalidArgument, match=r"`accumulate`=False, and all that AccumulateGrad does .* `.grad` of x"):
        node.replay()
    assert node.replay(accumulate=True) == ()
    assert same([x.grad], [torch.full((3,), 2.0)])


def test_what_was_freed_is_said() -> None:
    node = gp.record_backward(leaf(3).sin().sum(), values=True).nodes[1]

    with pytest.raises(gp.InvalidArgument, match="`retain_graph`=False freed what SinBackward0 saved"):
        node.replay()


def test_what_was_not_kept_is_said() -> None:
    node = gp.record_backward(leaf(3).sin().sum(), retain_graph=True).nodes[1]

    with pytest.raises(gp.InvalidArgument, match="`values=True`"):
        node.replay()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], r"`len\(grad_outputs\)`=0, but SinBackward0 receives 1"),
        ([torch.ones(2)], r"`grad_outputs\[0\]` has `shape`=\[2\] .* receives \[3\] and torch.float32"),
        ([torch.ones(3).double()], r"`dtype`=torch.float64"),
    ],
)
def test_gradients_that_do_not_fit_are_refused(given: list[Tensor], message: str) -> None:
    node = gp.record_backward(leaf(3).sin().sum(), retain_graph=True).nodes[1]

    with pytest.raises(gp.InvalidArgument, match=message):
        node.replay(given)


def test_torchs_nodes_take_none_for_zeros() -> None:
    left, right = leaf(4).split(2)
    node = gp.record_backward((left * right).sum(), retain_graph=True).nodes[2]

    assert node.name == "SplitBackward0"
    assert same(node.replay([torch.ones(2), None]), [torch.tensor([1.0, 1.0, 0.0, 0.0])])


def test_a_function_gets_zeros_in_the_place_of_none_unless_it_wants_none() -> None:
    """Which it was in the backward; a Function without `set_materialize_grads(False)` would add None and a tensor."""
    x = leaf(3)
    parts = gp.record_backward(run(Parts, x, "", torch.ones(3), leaf(3))[1].sum(), retain_graph=True).nodes[1]
    sparing = gp.record_backward(run(Sparing, x)[1].sum(), retain_graph=True).nodes[1]

    assert same(parts.replay([torch.ones(3), None])[:1], [2 * x])
    assert same(sparing.replay([None, torch.ones(3)]), [torch.full((3,), 3.0)])


def test_where_it_is_not_known_what_a_function_wants_this_is_said() -> None:
    both = run(Sparing, leaf(3))
    node = gp.record_backward(both, [torch.ones(3)] * 2, retain_graph=True).nodes[0]

    with pytest.raises(gp.InvalidArgument, match=r"Give `torch.zeros\(\[3\]\)`"):
        node.replay([None, torch.ones(3)])
