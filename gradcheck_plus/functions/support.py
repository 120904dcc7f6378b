"""What printed programs about functions use: uses of a result, layouts, gradients, and how they are compared.

A standalone repro carries the source of what it uses from here, so each definition needs nothing but torch.
"""

import gc
import itertools
import weakref

import torch

__all__ = ["gc", "itertools", "torch", "weakref"]


def floats(*trees):
    """The tensors of some results that can have a gradient."""
    found = []
    for tree in trees:
        if torch.is_tensor(tree):
            found += [tree] if tree.is_floating_point() or tree.is_complex() else []
        elif isinstance(tree, dict):
            found += floats(*tree.values())
        elif isinstance(tree, (tuple, list)):
            found += floats(*tree)
        elif hasattr(tree, "__dataclass_fields__"):
            found += floats(*vars(tree).values())
    return found


def weights(t, number=0):
    """Cotangents for a tensor: odd sixteenths, none zero, exact in every floating dtype."""
    i = torch.arange(t.numel(), device=t.device)
    w = ((i * 7 + 3 + 5 * number) % 16 * 2 - 15).reshape(t.shape) / 16
    return (torch.complex(w.double(), -w.double() / 2) if t.is_complex() else w).to(t.dtype)


def wide(t):
    """A tensor in double precision: what is done with a result shall cost no bits of its own."""
    return t.to(torch.complex128 if t.is_complex() else torch.float64)


def terms(*trees):
    """What a loss adds up: every element of a result with a weight of its own."""
    parts = [(wide(t) * wide(weights(t, n))).real.reshape(-1) for n, t in enumerate(floats(*trees))]
    return torch.cat(parts) if parts else torch.zeros(1, dtype=torch.float64)


def sums(*trees):
    """The sum of each tensor of a result: its gradient is expanded."""
    parts = [t.sum().reshape(1) for t in floats(*trees)]
    return torch.cat([wide(t).real for t in parts]) if parts else torch.zeros(1, dtype=torch.float64)


def turned(tree):
    """The tensors of a result, transposed."""
    return [t.movedim(0, -1) if t.dim() else t for t in floats(tree)]


def stacked(tree):
    """The tensors of a result, each stacked with a constant: gradients come with gaps in memory."""
    return [torch.stack([t, torch.zeros_like(t)], -1) for t in floats(tree)]


def sliced(tree):
    """A slice of the tensors of a result."""
    return [t[..., : (t.shape[-1] + 1) // 2] if t.dim() else t for t in floats(tree)]


def row_sums(tree):
    """The sums over the first dimension of the tensors of a result: gradients come expanded along it."""
    return [t.sum(0) if t.dim() else t for t in floats(tree)]


def doubled(tree):
    """A result, each tensor of it doubled in place."""
    for t in floats(tree):
        t.mul_(2)
    return tree


def transposed(t):
    """The same values, transposed in memory."""
    return t.movedim(0, -1).contiguous().movedim(-1, 0)


def strided(t):
    """The same values with others between them in memory."""
    return torch.stack([t, torch.zeros_like(t)], -1)[..., 0]


def offset(t):
    """The same values, not at the beginning of their memory."""
    return torch.cat([torch.zeros_like(t.reshape(-1)[:1]), t.reshape(-1)])[1:].view(t.shape) if t.numel() else t


def expanded(t):
    """The first of the values along the first dimension, expanded."""
    return t[:1].expand(t.shape)


def leaf(value, layout=None, grad=True):  # noqa: FBT002 - as repros call it
    """A tensor of its own with these values."""
    made = value.detach().clone(memory_format=torch.contiguous_format)
    made = (layout(made) if layout else made).detach()
    return made.requires_grad_() if grad else made


def gradient(t):
    """The gradient of a leaf, wherever it was put: frameworks hang a `main_grad` on a parameter for it."""
    main = getattr(t, "main_grad", None)
    if main is None or not main.any():
        return t.grad
    if t.grad is None or getattr(t, "grad_added_to_main_grad", False):
        return main
    return t.grad + main


def gradients(run, op, leaves, times=1):
    """The gradients of some leaves, as the last of some backwards leaves them."""
    made = leaves()
    loss = run(op, *made).sum()
    if not loss.requires_grad:
        return [None for _ in made]
    for n in range(times):
        for t in made:
            t.grad = None
            if hasattr(t, "main_grad"):
                t.main_grad.zero_()
        loss.backward(retain_graph=n + 1 < times)
    return [gradient(t) for t in made]


def pulled(op, call, leaves, cotangent=None, **options):
    """The gradients of fresh leaves for one call, each output with a cotangent that is made for it."""
    made = leaves()
    ys = floats(call(op, *made))
    return vjp(ys, made, [(cotangent or weights)(y) for y in ys], **options)


def finite(*gradients):
    """Is every gradient finite? What is not is no number to reckon with."""
    return all(g is None or bool(g.isfinite().all()) for g in gradients)


def shown(t):
    """A few values of a gradient, as text."""
    if t is None:
        return "None"
    return ", ".join(f"{v:.6g}" for v in t.detach().reshape(-1)[:3].tolist()) + (", ..." if t.numel() > 3 else "")


def vjp(ys, made, cotangents, **options):
    """The gradients of some leaves for cotangents of some outputs."""
    pairs = [(y, c) for y, c in zip(ys, cotangents, strict=False) if y.requires_grad and c is not None]
    wanted = [t for t in made if t.requires_grad]
    if not pairs or not wanted:
        return [None for _ in made]
    found = torch.autograd.grad([y for y, _ in pairs], wanted, [c for _, c in pairs], allow_unused=True, **options)
    each = iter(found)
    return [next(each) if t.requires_grad else None for t in made]


def size(t):
    """The largest finite magnitude in a tensor."""
    t = torch.zeros(()) if t is None else t.detach()
    t = t.abs()[t.isfinite()] if t.numel() else t.abs()
    return float(t.max()) if t.numel() else 0.0


def near(a, b, scale=0.0):
    """Are two gradients the same but for rounding, where the first is finite? None counts as zeros."""
    if a is None or b is None:
        other = b if a is None else a
        return other is None or not other.detach().count_nonzero().item()
    if a.shape != b.shape:
        return False
    a, b = a.detach(), b.detach()
    unit = torch.finfo(a.dtype).eps
    same = (a == b) | ~a.isfinite()
    far = (wide(a) - wide(b)).abs().masked_fill(same, 0.0)
    return bool((far <= 256 * unit * max(size(a), scale, 1.0)).all())
