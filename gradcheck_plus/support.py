"""What printed programs use: values, parameters, containers, custom Functions, and plain autograd in the subject's place.

A standalone repro carries the source of what it uses from here, so each definition needs nothing but the imports at the top.
"""

import collections
import copy
import dataclasses
import math

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn

__all__ = ["F", "collections", "copy", "dataclasses", "math", "nn", "torch"]


DEVICE = "cpu"
DTYPE = torch.float32


def values(shape, seed, dtype=None):
    """Distinct odd multiples of 1/32 between -2 and 2: the same on every machine, exact in every floating dtype."""
    i = torch.arange(math.prod(shape), device=DEVICE)
    return (((i * (2 * i + 2 * seed + 29) + 17 * seed) % 64 * 2 - 63) / 32).reshape(shape).to(dtype or DTYPE).clone()


def integers(shape, seed, dtype=torch.int64):
    """Small non-negative integers, zeros and repeats among them."""
    return (values(shape, seed) * 3).abs().floor().to(dtype)


def one_hot(shape, seed, dtype=None):
    """One element is 1, the rest are 0."""
    n = math.prod(shape)
    return (torch.arange(n, device=DEVICE) == seed % max(n, 1)).reshape(shape).to(dtype or DTYPE)


def fill(module):
    """Give every parameter values that are the same on every machine."""
    with torch.no_grad():
        for seed, parameter in enumerate(module.parameters()):
            parameter.copy_(values(parameter.shape, seed + 50, parameter.dtype) / 2)


def sample_call(made):
    """The positional and keyword arguments of a sample call, the same ones every time."""
    torch.manual_seed(0)
    made = on_device(made() if callable(made) else copy.deepcopy(made))
    if isinstance(made, dict):
        return (), made
    if torch.is_tensor(made):
        return (made,), {}
    pair = len(made) == 2 and isinstance(made[0], (tuple, list)) and isinstance(made[1], dict)
    return made if pair else (made, {})


def on_device(value):
    """The tensors of a value moved to the device."""
    if torch.is_tensor(value):
        return value.to(DEVICE)
    if type(value) is dict:
        return {key: on_device(child) for key, child in value.items()}
    return type(value)(map(on_device, value)) if type(value) in (list, tuple) else value


def draw(count):
    """Draw some random numbers, as a caller may between two calls."""
    torch.rand(count, device=DEVICE)


Named1 = collections.namedtuple("Named1", ["first"])
Named2 = collections.namedtuple("Named2", ["first", "second"])
Named3 = collections.namedtuple("Named3", ["first", "second", "third"])


@dataclasses.dataclass
class Data1:
    first: object


@dataclasses.dataclass
class Data2:
    first: object
    second: object


@dataclasses.dataclass
class Data3:
    first: object
    second: object
    third: object


class Swish(torch.autograd.Function):
    """x * sigmoid(x)."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad * s * (1 + x * (1 - s))


class PowerPair(torch.autograd.Function):
    """(x * w, x * w ** 2): two results of the same shape."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w, x * w * w

    @staticmethod
    def backward(ctx, grad_first, grad_second):
        x, w = ctx.saved_tensors
        return grad_first * w + grad_second * w * w, grad_first * x + grad_second * 2 * x * w


class ScaleAndShift(torch.autograd.Function):
    """(x * w, x + w) for a row w: two results, whose gradients meet in both operands."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w, x + w

    @staticmethod
    def backward(ctx, grad_scaled, grad_shifted):
        x, w = ctx.saved_tensors
        return grad_scaled * w + grad_shifted, (grad_scaled * x + grad_shifted).sum_to_size(w.shape)


class SinAndCos(torch.autograd.Function):
    """(sin(x), cos(x)): each result is saved for the gradient of the other."""

    @staticmethod
    def forward(ctx, x):
        sin, cos = x.sin(), x.cos()
        ctx.save_for_backward(sin, cos)
        return sin, cos

    @staticmethod
    def backward(ctx, grad_sin, grad_cos):
        sin, cos = ctx.saved_tensors
        return grad_sin * cos - grad_cos * sin


class ExpAndIndex(torch.autograd.Function):
    """(exp(x / 4), index of the largest element): the second result is not differentiable."""

    @staticmethod
    def forward(ctx, x):
        result, index = torch.exp(x / 4), x.argmax()
        ctx.save_for_backward(result)
        ctx.mark_non_differentiable(index)
        return result, index

    @staticmethod
    def backward(ctx, grad, _):
        (result,) = ctx.saved_tensors
        return grad * result / 4


class ShiftInPlace(torch.autograd.Function):
    """x + 1, written into the memory of x."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.add_(1)

    @staticmethod
    def backward(ctx, grad):
        return grad


class Reversed(torch.autograd.Function):
    """x with its dimensions in the opposite order: a view."""

    @staticmethod
    def forward(ctx, x):
        return x.permute(*reversed(range(x.dim())))

    @staticmethod
    def backward(ctx, grad):
        return grad.permute(*reversed(range(grad.dim())))


class SumAndDifference(torch.autograd.Function):
    """(x + y, x - y): asks not to be given zeros for a result that receives no gradient."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return x + y, x - y

    @staticmethod
    def backward(ctx, grad_sum, grad_difference):
        if grad_difference is None:
            return grad_sum, grad_sum
        if grad_sum is None:
            return grad_difference, -grad_difference
        return grad_sum + grad_difference, grad_sum - grad_difference


class SortedWithRanks(torch.autograd.Function):
    """(x in order along its last dimension, where each element came from, x): an integer result between two others."""

    @staticmethod
    def forward(ctx, x):
        result, places = x.sort(-1)
        ctx.save_for_backward(places)
        ctx.mark_non_differentiable(places)
        return result, places, x * 2

    @staticmethod
    def backward(ctx, grad_result, _, grad_double):
        (places,) = ctx.saved_tensors
        return grad_double * 2 + torch.zeros_like(grad_result).scatter(-1, places, grad_result)


class Counting(nn.Module):
    """x * weight, and counts how often it was called."""

    calls: torch.Tensor

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(()))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64, device=DEVICE))

    def forward(self, x):
        self.calls += 1
        return x * self.weight.to(x.dtype)


class Tied(nn.Module):
    """Two layers in submodules of their own that share their weight."""

    def __init__(self, width):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.decoder.weight = self.encoder.weight

    def forward(self, x):
        return self.decoder(self.encoder(x).tanh())


def spread(x):
    """A finite matrix made of another: near the diagonal 1, 2, 3, so that its eigenvalues and singular values lie apart."""
    return x.nan_to_num(0.0, 0.0, 0.0).sin() / 16 + x.new_tensor(range(1, x.shape[-1] + 1)).diag()


def symmetric(x):
    """A symmetric positive definite matrix made of another; its eigenvalues lie apart."""
    return (spread(x) + spread(x).mT) / 2


def doubled_row(x):
    """A copy of x whose first row was doubled through a view."""
    y = x.clone()
    y[0].mul_(2)
    return y


def shifted_diagonal(x):
    """A copy of x to whose diagonal its first column was added through a view, with the diagonal."""
    y = x.clone()
    view = y.diagonal()
    view += x[: view.shape[0], 0]
    return y, view * 2


def overwritten(x):
    """A copy of x whose last element of each row was overwritten with the first, squared."""
    y = x.clone()
    y[..., -1] = x[..., 0].square()
    return y


def shrunk(x):
    """x halved as often as it takes until its largest element is less than 1."""
    while x.numel() and x.detach().abs().amax().item() >= 1:
        x = x / 2
    return x


def alternating(x):
    """The sine of each row whose sum is positive, and the cosine of each other one."""
    return torch.stack([row.sin() if row.detach().sum().item() > 0 else row.cos() for row in x.unbind(0)])


def recomputed(function, *args):
    """A call under torch's own checkpoint, inside whatever is checked."""
    return torch.utils.checkpoint.checkpoint(function, *args, use_reentrant=False)


def recomputed_by_a_function(function, *args):
    """A call under torch's reentrant checkpoint, inside whatever is checked."""
    return torch.utils.checkpoint.checkpoint(function, *args, use_reentrant=True)


def plain_checkpoint(function, *args, **kwargs):
    """Plain autograd in the place of a checkpoint."""
    return function(*args, **kwargs)


def plain_wrap(module):
    """Plain autograd in the place of a wrapper."""
    return module


def plain_stage_backward(stage_output, output_grads, input_values):
    """Plain autograd in the place of a stage backward: one backward over the stage, then the `.grad` of its inputs, cleared."""
    pairs = [(o, g) for o, g in leaves(stage_output, output_grads) if o.requires_grad and g is not None]
    if pairs:
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
    grads = [v.grad if torch.is_tensor(v) else None for v in input_values]
    for v in input_values:
        if torch.is_tensor(v):
            v.grad = None
    return tuple(grads)


def plain_backward_input(stage_outputs_or_loss, output_grads, input_values, weights):
    """Plain autograd in the place of the first pass: the gradients of the inputs, and what the second pass needs."""
    given = [None] * len(stage_outputs_or_loss) if output_grads is None else output_grads
    received = zip(stage_outputs_or_loss, given, strict=True)
    pairs = [(o, g) for o, g in received if o.requires_grad and (g is not None or o.numel() == 1)]
    outputs, grads = [o for o, _ in pairs], [g for _, g in pairs]
    wanted = [v for v in input_values if torch.is_tensor(v) and v.requires_grad]
    found = iter(torch.autograd.grad(outputs, wanted, grads, retain_graph=True, allow_unused=True) if pairs and wanted else ())
    taken = tuple(next(found, None) if torch.is_tensor(v) and v.requires_grad else None for v in input_values)
    return taken, [{"outputs": outputs, "grads": grads}]


def plain_backward_weight(weights, param_groups, *, retain_graph=False):
    """Plain autograd in the place of the second pass: the gradients of the parameters, added to their `.grad`."""
    wanted = [w for w in weights if w.requires_grad]
    for group in param_groups:
        if group["outputs"] and wanted:
            torch.autograd.backward(group["outputs"], group["grads"], retain_graph=retain_graph, inputs=wanted)
    separate(wanted)


def separate(weights):
    """Give each weight a `.grad` of its own, which autograd does not always do."""
    seen = set()
    for w in weights:
        if w.grad is not None and w.grad.layout is torch.strided:
            if w.grad.data_ptr() in seen:
                w.grad = w.grad.clone()
            seen.add(w.grad.data_ptr())


def halved(*results):
    """Have the gradients that arrive at results halved."""
    for result in results:
        if result.grad_fn is not None:
            result.register_hook(lambda g: None if g is None else g * 0.5)


def leaves(output, grad):
    """The tensors of an output, each with its cotangent."""
    if torch.is_tensor(output):
        return [(output, grad)]
    keys = output if isinstance(output, dict) else range(len(output)) if isinstance(output, (tuple, list)) else ()
    return [pair for key in keys for pair in leaves(output[key], None if grad is None else grad[key])]


def structure(value):
    """The containers of a value, and what is not a tensor in them."""
    if torch.is_tensor(value):
        return "tensor"
    if isinstance(value, dict):
        return {key: structure(value[key]) for key in value}
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [structure(child) for child in value]
    if dataclasses.is_dataclass(value):
        return type(value).__name__, [structure(getattr(value, field.name)) for field in dataclasses.fields(value)]
    return value


def shared(tensor, inputs):
    """The name of the input whose memory a tensor shares."""
    memory = tensor.untyped_storage().data_ptr()
    return next((name for name, other in inputs.items() if other.untyped_storage().data_ptr() == memory), "nothing")


def total(parts, nothing):
    """The sum of the gradients that arrive, or what stands for none."""
    some = [part for part in parts if part is not None]
    return sum(some[1:], some[0]) if some else nothing
