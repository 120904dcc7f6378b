"""One node, run again: what it returns for gradients that it receives."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from gradcheck_plus.compat import expected_gradients, forward_class, run_backward_of
from gradcheck_plus.errors import InvalidArgument

Gradients = Sequence[torch.Tensor | None]


def replay(grad_fn: Any, grad_outputs: Gradients, *, materialises: bool | None) -> tuple[torch.Tensor | None, ...]:
    """Run one node outside the engine; no hook fires.

    Args:
        grad_fn: the node; one that accumulates does so.
        grad_outputs: what it receives.
        materialises: does its Function see zeros in the place of None? None where it is not known.

    Raises:
        InvalidArgument: the gradients do not fit the node, or what it saved was freed.
    """
    grad_outputs = list(grad_outputs)
    _refuse_misfits(grad_fn, grad_outputs)
    with torch.no_grad():
        try:
            found = _run(grad_fn, grad_outputs, materialises=materialises)
        except RuntimeError as error:
            if "backward through the graph a second time" not in str(error):
                raise
            raise InvalidArgument(
                f"`retain_graph`=False freed what {grad_fn.name()} saved, which its replay needs. Record the backward with"
                " `retain_graph=True`."
            ) from error
        return tuple(_handed_on(gradient, edge) for gradient, edge in zip(found, grad_fn.next_functions, strict=True))


def _refuse_misfits(grad_fn: Any, grad_outputs: Gradients) -> None:
    expected = expected_gradients(grad_fn)
    if len(grad_outputs) != len(expected):
        raise InvalidArgument(
            f"`len(grad_outputs)`={len(grad_outputs)}, but {grad_fn.name()} receives {len(expected)}: one for each"
            " differentiable output of its forward. Give None for an output without a gradient."
        )
    for i, (gradient, (shape, dtype, _)) in enumerate(zip(grad_outputs, expected, strict=True)):
        if gradient is not None and (tuple(gradient.shape), gradient.dtype) != (shape, dtype):
            raise InvalidArgument(
                f"`grad_outputs[{i}]` has `shape`={list(gradient.shape)} and `dtype`={gradient.dtype}, but {grad_fn.name()}"
                f" receives {list(shape)} and {dtype}. Give a gradient like that output of its forward."
            )


def _run(grad_fn: Any, grad_outputs: Gradients, *, materialises: bool | None) -> list[torch.Tensor | None]:
    if forward_class(grad_fn) is None:
        found = grad_fn(*grad_outputs)  # whose formulas take None for zeros
        return list(found) if isinstance(found, tuple) else [found]
    found = run_backward_of(grad_fn, _materialised(grad_fn, grad_outputs, materialises=materialises))
    # One for each argument of the forward, but a node has one edge for each tensor among them.
    needed = iter([gradient for gradient, needs in zip(found, grad_fn.needs_input_grad, strict=False) if needs])
    return [next(needed, None) if after is not None else None for after, _ in grad_fn.next_functions]


def _materialised(grad_fn: Any, grad_outputs: Gradients, *, materialises: bool | None) -> Gradients:
    """Return the gradients as the engine would hand them to a Function."""
    if materialises is False or all(gradient is not None for gradient in grad_outputs):
        return grad_outputs
    if materialises is None:
        i = next(i for i, gradient in enumerate(grad_outputs) if gradient is None)
        raise InvalidArgument(
            f"`grad_outputs[{i}]`=None, and whether {grad_fn.name()} sees None there or zeros is not known: in the recorded"
            f" backward each gradient came. Give `torch.zeros({list(expected_gradients(grad_fn)[i][0])})`, which is the same"
            " unless its forward calls `ctx.set_materialize_grads(False)`."
        )
    return list(_with_zeros(grad_fn, grad_outputs))


def _with_zeros(grad_fn: Any, grad_outputs: Gradients) -> Iterator[torch.Tensor]:
    for gradient, (shape, dtype, device) in zip(grad_outputs, expected_gradients(grad_fn), strict=True):
        yield torch.zeros(shape, dtype=dtype, device=device) if gradient is None else gradient


def _handed_on(gradient: torch.Tensor | None, edge: tuple[Any, int]) -> torch.Tensor | None:
    """Return a gradient as the engine hands it on: none where nobody needs it, else in the shape and dtype of the input."""
    after, number = edge
    if after is None or gradient is None:
        return None
    shape, dtype, _ = expected_gradients(after)[number]
    if tuple(gradient.shape) != shape:
        gradient = gradient.sum_to_size(shape)
    if gradient.is_complex() and not dtype.is_complex:
        gradient = gradient.real
    return gradient.to(dtype)
