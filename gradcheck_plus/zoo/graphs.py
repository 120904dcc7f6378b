"""The autograd graph, walked: which leaves an output depends on."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import Node, get_gradient_edge


def node(tensor: Tensor) -> Node:
    """Return the node that the gradient of a tensor that requires grad goes to."""
    return get_gradient_edge(tensor).node


def nodes(outputs: Iterable[Tensor]) -> list[Node]:
    """Return every node that the gradients of some outputs can reach; those that do not require grad reach none."""
    todo = [node(output) for output in outputs if output.requires_grad]
    seen: dict[Node, None] = {}
    while todo:
        current = todo.pop()
        if current not in seen:
            seen[current] = None
            todo += [child for child, _ in current.next_functions if child is not None]
    return list(seen)


def leaves(outputs: Iterable[Tensor]) -> list[Tensor]:
    """Return the leaves that some outputs depend on, parameters among them."""
    variables: list[Any] = [getattr(found, "variable", None) for found in nodes(outputs)]
    return [variable for variable in variables if isinstance(variable, torch.Tensor)]
