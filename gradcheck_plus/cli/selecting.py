"""Which nodes ``trace`` shows."""

import argparse
import math
from collections.abc import Collection, Sequence
from difflib import get_close_matches

import msgspec

from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.graph.folding import modules
from gradcheck_plus.graph.pairing import SideBySide
from gradcheck_plus.graph.showing import nonfinite
from gradcheck_plus.graph.structs import RecordedNode


def select(nodes: Sequence[RecordedNode], options: argparse.Namespace) -> tuple[RecordedNode, ...]:
    """Return the nodes that pass every filter.

    Raises:
        InvalidArgument: a filter asks for what no node of this backward can be.
    """
    _check_range(nodes, options)
    _check_node(nodes, options.node)
    _check_module(nodes, options.module)
    last = len(nodes) - 1 if options.last is None else options.last
    return tuple(
        node
        for node, module in zip(nodes, modules(nodes), strict=True)
        if options.first <= node.index <= last
        and (options.node is None or _is_called(node, options.node))
        and (options.module is None or _is_within(node, module, options.module))
        and (node.kind == "leaf" or not options.leaves)
        and (not options.nonfinite or nonfinite((*node.received, *node.returned)))
    )


def select_pairs(sides: SideBySide, nodes: Collection[RecordedNode], options: argparse.Namespace) -> SideBySide:
    """Return those pairs whose node of the subject was selected.

    An operation passes where the only filter is its module; a node that the subject does not have by its own index, where that
    is all that is asked for.
    """
    filters = _filters(options)
    if not filters:
        return sides
    only_module, only_range = filters == ["module"], set(filters) <= {"first", "last"}
    kept = {node.index for node in nodes}
    last = math.inf if options.last is None else options.last
    return msgspec.structs.replace(
        sides,
        operations=tuple(pair for pair in sides.operations if only_module and _is_in(pair.path, options.module)),
        nodes=tuple(
            pair
            for pair in sides.nodes
            if pair.subject in kept
            or (pair.subject is None and pair.reference is not None and only_range and options.first <= pair.reference <= last)
        ),
    )


def _filters(options: argparse.Namespace) -> list[str]:
    usual = {"node": None, "module": None, "leaves": False, "first": 0, "last": None, "nonfinite": False}
    return [name for name, value in usual.items() if getattr(options, name) != value]


def _is_called(node: RecordedNode, name: str) -> bool:
    return name.lower() in node.name.lower()


def _is_within(node: RecordedNode, module: str, path: str) -> bool:
    """Is a node of a module, or a leaf that it sends to or that bears its name?"""
    return _is_in(module, path) or any(_is_in(name, path) for name in (node.leaf or "").split(" = "))


def _is_in(name: str, path: str) -> bool:
    return name == path or name.startswith(f"{path}.")


def _check_range(nodes: Sequence[RecordedNode], options: argparse.Namespace) -> None:
    last = len(nodes) - 1
    for name, index in (("from", options.first), ("to", options.last)):
        if index is not None and not 0 <= index <= last:
            raise InvalidArgument(f"`{name}`={index} is no node of this backward. Write an index from 0 to {last}.")
    if options.last is not None and options.last < options.first:
        raise InvalidArgument(f"`to`={options.last} comes before `from`={options.first}. Write one from {options.first} on.")


def _check_node(nodes: Sequence[RecordedNode], name: str | None) -> None:
    if name is not None and not any(_is_called(node, name) for node in nodes):
        raise _none_such("node", name, {node.name for node in nodes}, "is part of no node's name")


def _check_module(nodes: Sequence[RecordedNode], path: str | None) -> None:
    owners = modules(nodes)
    if path is not None and not any(_is_within(node, owner, path) for node, owner in zip(nodes, owners, strict=True)):
        above = {owner[:end] for owner in set(owners) for end in _ends(owner)}
        raise _none_such("module", path, above, "has no node")


def _ends(path: str) -> list[int]:
    """Return where the names of a module and of those that it is in end in its path."""
    return [place for place, letter in enumerate(path) if letter == "."] + [len(path)] if path else []


def _none_such(option: str, given: str, known: Collection[str], rule: str) -> InvalidArgument:
    near = get_close_matches(given, sorted(known), n=3) or sorted(known)[:12]
    return InvalidArgument(f"`{option}`={given!r} {rule} in this backward. There are: {', '.join(near) or 'none'}.")
