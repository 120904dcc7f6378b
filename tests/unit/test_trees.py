"""Trees: a path is code that reaches its leaf."""

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradcheck_plus import support
from gradcheck_plus.case import Constant, Container, Name, Tree
from gradcheck_plus.case.trees import ContainerKind, containers, depth, names, steps, walk

FIELDS = ("first", "second", "third")
KINDS: tuple[ContainerKind, ...] = get_args(ContainerKind)


@st.composite
def contained(draw: st.DrawFn, children: st.SearchStrategy[Tree]) -> Container:
    kind = draw(st.sampled_from(KINDS))
    fields = kind in ("namedtuple", "dataclass")
    inner = tuple(draw(st.lists(children, min_size=int(fields), max_size=3)))
    if kind == "dict":
        keys = draw(st.lists(st.text(max_size=4), min_size=len(inner), max_size=len(inner), unique=True))
        return Container(kind, inner, tuple(keys))
    return Container(kind, inner, FIELDS[: len(inner)] if fields else ())


def trees() -> st.SearchStrategy[Tree]:
    """Draw trees of names and constants; shrinks towards one name."""
    leaves: st.SearchStrategy[Tree] = st.one_of(
        st.sampled_from(["x0", "x1", "h0"]).map(Name), st.sampled_from([None, 3, 0.5, "text", True]).map(Constant)
    )
    return st.recursive(leaves, contained, max_leaves=8)


def value_of(tree: Tree) -> Any:
    """Build the value that a tree describes, with its leaves in the places of values."""
    if not isinstance(tree, Container):
        return tree
    children = [value_of(child) for child in tree.children]
    match tree.kind:
        case "dict":
            return dict(zip(tree.keys, children, strict=True))
        case "list":
            return children
        case "tuple":
            return tuple(children)
        case _:
            made = support.Named1 if tree.kind == "namedtuple" else support.Data1
            return getattr(support, made.__name__.replace("1", str(len(children))))(*children)


few = settings(max_examples=150, database=None, deadline=None, derandomize=True)


@few
@given(trees())
def test_the_path_of_a_leaf_is_code_that_reaches_it(tree: Tree) -> None:
    value = value_of(tree)

    for path, leaf in walk(tree):
        assert eval(f"value{path}", {"value": value}) is leaf


@few
@given(trees(), st.text(alphabet="abc", max_size=3))
def test_walk_puts_what_it_is_given_before_every_path(tree: Tree, prefix: str) -> None:
    assert [(prefix + path, leaf) for path, leaf in walk(tree)] == list(walk(tree, prefix))


@few
@given(trees())
def test_every_leaf_has_a_path_of_its_own(tree: Tree) -> None:
    paths = [path for path, _ in walk(tree)]

    assert len(set(paths)) == len(paths)


@few
@given(trees(), trees())
def test_names_are_those_of_the_leaves_in_order(first: Tree, second: Tree) -> None:
    """Repeats included, constants not."""
    leaves = [leaf for tree in (first, second) for _, leaf in walk(tree)]

    assert names(first, second) == [leaf.name for leaf in leaves if isinstance(leaf, Name)]


@few
@given(trees())
def test_depth_counts_the_containers_around_the_deepest_leaf(tree: Tree) -> None:
    """Taking the outermost container away makes every child shallower, and one of them by exactly one."""
    if isinstance(tree, Container):
        assert depth(tree) == 1 + max((depth(child) for child in tree.children), default=0)
    else:
        assert depth(tree) == 0


@few
@given(trees())
def test_containers_come_outermost_first_and_each_once(tree: Tree) -> None:
    found = list(containers(tree))

    assert (found[:1] == [tree]) == isinstance(tree, Container)
    inner = [c for child in tree.children for c in containers(child)] if isinstance(tree, Container) else []
    assert found[1:] == inner


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        (Container("tuple", (Name("x"), Name("y"))), ["[0]", "[1]"]),
        (Container("list", (Name("x"),)), ["[0]"]),
        (Container("dict", (Name("x"), Name("y")), ("it's", "b")), ['["it\'s"]', "['b']"]),
        (Container("namedtuple", (Name("x"),), ("first",)), [".first"]),
        (Container("dataclass", (Name("x"), Name("y")), ("first", "second")), [".first", ".second"]),
        (Container("tuple", ()), []),
    ],
)
def test_steps_are_how_code_reaches_the_children(container: Container, expected: list[str]) -> None:
    assert steps(container) == expected


@pytest.mark.parametrize("kind", ["dict", "namedtuple", "dataclass"])
def test_a_child_without_a_key_is_not_passed_over(kind: Any) -> None:
    """A hole in a tree would be a hole in the comparison."""
    with pytest.raises(ValueError, match="zip"):
        list(walk(Container(kind, (Name("x"), Name("y")), ("first",))))
