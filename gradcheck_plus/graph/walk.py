"""Going through an autograd graph, as far as it is deep."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.autograd.graph import get_gradient_edge

from gradcheck_plus.errors import InvalidArgument


def roots(outputs: torch.Tensor | Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """Return the tensors that a backward starts from.

    Raises:
        InvalidArgument: there is none, or one that needs no gradient.
    """
    found = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    if not found:
        raise InvalidArgument("`outputs`=[] has no tensor. Give the tensors that the backward starts from.")
    for i, output in enumerate(found):
        if not isinstance(output, torch.Tensor):
            raise InvalidArgument(f"`outputs[{i}]` is a {type(output).__name__}. Give tensors, such as the loss.")
        if not output.requires_grad:
            raise InvalidArgument(
                f"`outputs[{i}].requires_grad`=False: no backward starts from it. Leave it out, or compute it from a tensor"
                " that requires grad and outside `torch.no_grad()`."
            )
    return found


def reachable(roots: Iterable[Any]) -> dict[Any, tuple[Any, ...]]:
    """Return every node that a backward from some roots reaches, with the nodes that each returns its gradients to.

    A root is a tensor or a gradient edge.

    torch makes the Python object of a node of its own anew unless somebody holds it: while this dict lives, each node is one.
    """
    found: dict[Any, tuple[Any, ...]] = {}
    waiting = [(get_gradient_edge(root) if isinstance(root, torch.Tensor) else root).node for root in roots]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found[node] = tuple(after for after, _ in node.next_functions)
            waiting += [after for after in found[node] if after is not None]
    return found


def leaf_names(names: torch.nn.Module | Mapping[str, torch.Tensor] | None) -> dict[torch.Tensor, str]:
    """Return the name of every named leaf; one with several names, such as a tied parameter, has all of them."""
    pairs: Iterable[tuple[str, torch.Tensor]]
    if isinstance(names, torch.nn.Module):
        pairs = names.named_parameters(remove_duplicate=False)
    elif names is None or isinstance(names, Mapping):
        pairs = (names or {}).items()
    else:
        raise InvalidArgument(
            f"`names` is a {type(names).__name__}. Give the module whose parameters are to be named, or a dict of leaves."
        )
    found: dict[torch.Tensor, str] = {}
    for name, leaf in pairs:
        found[leaf] = f"{found[leaf]} = {name}" if leaf in found else name
    return found
