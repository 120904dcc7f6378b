"""Hooks on every node, which note what passes."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradcheck_plus.graph.structs import Gradient, Gradients

Values = tuple[torch.Tensor | None, ...]


@dataclass(frozen=True, eq=False)
class Seen:
    """What one node received and returned; the fields are those of `Node`."""

    grad_fn: Any
    received: Gradients
    returned: Gradients
    received_values: Values | None
    returned_values: Values | None


@contextlib.contextmanager
def watched(graph: Mapping[Any, Sequence[Any]], *, values: bool) -> Iterator[list[Seen]]:
    """Note what the nodes of a graph receive and return while this is entered, in the order in which they run."""
    seen: list[Seen] = []
    handles = [node.register_hook(_hook(node, leads_to, seen, values=values)) for node, leads_to in graph.items()]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def _hook(node: Any, leads_to: Sequence[Any], seen: list[Seen], *, values: bool) -> Callable[[Values, Values], None]:
    def hook(grad_inputs: Values, grad_outputs: Values) -> None:
        # A Function may return a gradient where none is due; the engine drops it.
        returned = tuple(g if after is not None else None for g, after in zip(grad_inputs, leads_to, strict=False))
        kept = (_copies(grad_outputs), _copies(returned)) if values else (None, None)
        seen.append(Seen(node, _figures(grad_outputs), _figures(returned), *kept))

    return hook


def _copies(gradients: Values) -> Values:
    """Copy: the engine may add to a gradient in place once it is handed on."""
    return tuple(None if gradient is None else copy(gradient.detach()) for gradient in gradients)


def copy(gradient: torch.Tensor) -> torch.Tensor:
    """Copy a gradient and its strides too, since the bits of what a node returns may depend on them.

    Example:
        >>> copy(torch.ones(1, 3).expand(2, 3)).stride()
        (0, 1)
    """
    if gradient.layout is not torch.strided:
        return gradient.clone()
    dense = gradient
    for dim, stride in enumerate(gradient.stride()):
        dense = dense.narrow(dim, 0, 1) if stride == 0 and dense.shape[dim] > 1 else dense
    copied = dense.clone()
    if copied.stride() != dense.stride():
        with contextlib.suppress(RuntimeError):  # where elements overlap
            copied = dense.new_empty_strided(dense.shape, dense.stride()).copy_(dense)
    return copied.expand(gradient.shape)


def _figures(gradients: Values) -> Gradients:
    return tuple(None if gradient is None else figures(gradient) for gradient in gradients)


@torch.no_grad()
def figures(gradient: torch.Tensor) -> Gradient:
    """Return a gradient in figures. On an accelerator this waits for it.

    Example:
        >>> figures(torch.tensor([3.0, 4.0, float("nan")]))
        Gradient(shape=(3,), dtype='float32', norm=None, nonfinite=1)
    """
    shape, dtype = tuple(gradient.shape), str(gradient.dtype).removeprefix("torch.")
    elements = gradient.coalesce().values() if gradient.layout is torch.sparse_coo else gradient
    norm = torch.linalg.vector_norm(elements).item()
    if norm - norm == 0:  # finite, as almost always: one pass over the gradient is enough
        return Gradient(shape, dtype, norm, 0)
    nonfinite = elements.numel() - int(elements.isfinite().sum())
    return Gradient(shape, dtype, None if nonfinite else torch.linalg.vector_norm(elements.double()).item(), nonfinite)
