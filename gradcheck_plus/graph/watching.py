"""Hooks on every node of every backward that runs, which note what passes."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradcheck_plus.compat import backward_runs, current_node, forward_class, materialising
from gradcheck_plus.graph.structs import Gradient, Gradients
from gradcheck_plus.graph.walk import reachable

Values = tuple[torch.Tensor | None, ...]


@dataclass(frozen=True, eq=False)
class Seen:
    """What one node received and returned; the fields are those of `Node`."""

    grad_fn: Any
    received: Gradients
    returned: Gradients
    received_values: Values | None
    returned_values: Values | None
    backward: int


class Watch:
    """Notes what the nodes receive and return in every backward that runs while `watching` is entered.

    Attributes:
        seen: the nodes in the order in which they ran.
        graph: every node that a backward could reach, with the nodes that it returns its gradients to. While it is held, each
            is one Python object.
        starts: what each backward started from.
        parents: the node in whose backward each backward ran, None for one that was called from outside.
        returned: copies of the gradients that each outermost backward returned, which is what `torch.autograd.grad` asks for.
        materialises: of nodes of Functions, whether they were handed tensors only.
    """

    def __init__(self, *, values: bool) -> None:
        self.values = values
        self.seen: list[Seen] = []
        self.graph: dict[Any, tuple[Any, ...]] = {}
        self.starts: list[Sequence[Any]] = []
        self.parents: list[Any] = []
        self.materialises: dict[Any, bool] = {}
        self.returned: list[Values] = []
        self._hooked: set[Any] = set()
        self._running: list[int] = []

    @property
    def running(self) -> int | None:
        """The number of the backward that runs, the innermost one; None if none does."""
        return self._running[-1] if self._running else None

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch every backward that starts meanwhile, nested ones included."""
        with backward_runs(self._backward):
            yield

    @contextlib.contextmanager
    def _backward(self, roots: Sequence[Any]) -> Iterator[Callable[[Values], None]]:
        graph = reachable(roots)
        for node, leads_to in graph.items():
            # What is known already stays, with the objects that it was seen with.
            self.graph.setdefault(node, leads_to)
        # A leaf can be reached by an outer backward and by one within it: one hook sees both.
        fresh = [node for node in graph if node not in self._hooked]
        number = len(self.starts)
        self._running.append(number)
        self.starts.append(roots)
        self.parents.append(current_node())
        self._hooked.update(fresh)
        handles = [node.register_hook(self._hook(node)) for node in fresh]
        try:
            with materialising([node for node in fresh if forward_class(node) is not None]) as handed_tensors:
                yield lambda returned: self._keep(self.parents[number], returned)
        finally:
            for handle in handles:
                handle.remove()
            self._hooked.difference_update(fresh)
            self._running.pop()
            self.materialises.update(handed_tensors)

    def _keep(self, parent: Any, returned: Values) -> None:
        """Keep the gradients that a backward returns to its caller, if that is no other backward."""
        if self.values and parent is None:
            self.returned.append(_copies(returned or ()))

    def _hook(self, node: Any) -> Callable[[Values, Values], None]:
        leads_to = self.graph[node]

        def hook(grad_inputs: Values, grad_outputs: Values) -> None:
            # A Function may return a gradient where none is due; the engine drops it.
            returned = tuple(g if after is not None else None for g, after in zip(grad_inputs, leads_to, strict=False))
            copied, handed_on = (_copies(grad_outputs), _copies(returned)) if self.values else (None, None)
            backward = self._running[-1]
            self.seen.append(Seen(node, _figures(grad_outputs), _figures(returned), copied, handed_on, backward))

        return hook


@torch.no_grad()
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
