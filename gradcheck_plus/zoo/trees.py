"""Containers taken apart and put together again, dataclasses among them, which torch's own pytree does not know."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor

#: Puts tensors, in their order, into the containers that others were taken from.
Rebuild = Callable[[Iterator[Any]], Any]


def flattened(tree: Any) -> tuple[list[Tensor], Rebuild]:
    """Return the tensors of a tree, and what puts others in their places. What is no tensor stays where it is.

    Example:
        >>> import torch
        >>> tensors, rebuild = flattened({"a": (torch.ones(2), None), "b": 3})
        >>> len(tensors), rebuild(iter(["one"]))
        (1, {'a': ('one', None), 'b': 3})
    """
    if isinstance(tree, Tensor):
        return [tree], next
    opened = open_container(tree)
    if opened is None:
        return [], lambda _: tree
    children, make = opened
    parts = [flattened(child) for child in children]
    rebuilds = [rebuild for _, rebuild in parts]
    return [t for tensors, _ in parts for t in tensors], lambda new: make([rebuild(new) for rebuild in rebuilds])


def mapped(change: Callable[[Tensor], Any], tree: Any) -> Any:
    """Return a tree with every tensor changed."""
    tensors, rebuild = flattened(tree)
    return rebuild(map(change, tensors))


def open_container(tree: Any) -> tuple[list[Any], Callable[[list[Any]], Any]] | None:
    """Return the children of a container, and what makes another of its kind of others; None for anything else."""
    kind = type(tree)
    if isinstance(tree, dict):
        keys = list(tree)
        return list(tree.values()), lambda new: kind(zip(keys, new, strict=True))
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return list(tree), lambda new: kind(*new)
    if isinstance(tree, list | tuple):
        return list(tree), kind
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        names = [field.name for field in dataclasses.fields(tree)]
        return [getattr(tree, name) for name in names], lambda new: kind(**dict(zip(names, new, strict=True)))
    return None
