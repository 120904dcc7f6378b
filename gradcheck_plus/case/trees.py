"""Trees of values: how arguments and outputs are nested."""

from collections.abc import Iterator
from typing import Literal

import msgspec

Scalar = None | bool | int | float | str

ContainerKind = Literal["tuple", "list", "dict", "namedtuple", "dataclass"]


class Name(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="name"):
    """A value of the program, by its name."""

    name: str


class Constant(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="constant"):
    """A plain Python value."""

    value: Scalar


class Container(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="container"):
    """A container of trees; `keys` names the children of a dict, namedtuple or dataclass."""

    kind: ContainerKind
    children: tuple["Tree", ...]
    keys: tuple[str, ...] = ()


Tree = Name | Constant | Container


def walk(tree: Tree, path: str = "") -> Iterator[tuple[str, Name | Constant]]:
    """Yield the leaves of a tree in order, each with its path written as code.

    Example:
        >>> [(p, leaf.name) for p, leaf in walk(Container("dict", (Container("tuple", (Name("h"),)),), ("a",)))]
        [("['a'][0]", 'h')]
    """
    if not isinstance(tree, Container):
        yield path, tree
        return
    for step, child in zip(steps(tree), tree.children, strict=True):
        yield from walk(child, path + step)


def steps(tree: Container) -> list[str]:
    """Return how code reaches each child of a container.

    Example:
        >>> steps(Container("dataclass", (Constant(1),), ("first",)))
        ['.first']
    """
    if tree.kind == "dict":
        return [f"[{key!r}]" for key in tree.keys]
    if tree.kind in ("namedtuple", "dataclass"):
        return [f".{key}" for key in tree.keys]
    return [f"[{index}]" for index in range(len(tree.children))]


def names(*trees: Tree) -> list[str]:
    """Return the names of the values in some trees, in order, repeats included."""
    return [leaf.name for tree in trees for _, leaf in walk(tree) if isinstance(leaf, Name)]


def containers(tree: Tree) -> Iterator[Container]:
    """Yield every container of a tree, outermost first."""
    if isinstance(tree, Container):
        yield tree
        for child in tree.children:
            yield from containers(child)


def depth(tree: Tree) -> int:
    """Return how many containers the deepest leaf lies in.

    Example:
        >>> depth(Name("x")), depth(Container("tuple", (Name("x"),)))
        (0, 1)
    """
    return 1 + max(map(depth, tree.children), default=0) if isinstance(tree, Container) else 0
