"""Trees, primals and cotangents as Python source: each is the value that the case describes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gradcheck_plus import support as printed
from gradcheck_plus.case import Case, Constant, Container, Cotangent, Name, Primal, Spec, Tree
from gradcheck_plus.case.point import LEAF_LAYOUTS, NON_LEAF_LAYOUTS
from gradcheck_plus.case.trees import ContainerKind, containers, walk
from gradcheck_plus.record import storage
from gradcheck_plus.source import cotangent_source, expression, input_lines, laid_out
from gradcheck_plus.subject import Kind

#: It has no annotations: it is printed into repros, which a person reads.
support: Any = printed

SHAPES = ((2, 3), (3,), (2, 2, 4), (2, 3, 2, 2), (4, 2))
FIELDS = ("first", "second", "third")
KINDS_OF_CONTAINER: tuple[ContainerKind, ...] = get_args(ContainerKind)
GRAD = Spec((2, 3), requires_grad=True)


def evaluated(text: str, **names: Any) -> Any:
    return eval(text, {**vars(support), **names})


# trees ------------------------------------------------------------------------------------------------------------------


@st.composite
def contained(draw: st.DrawFn, children: st.SearchStrategy[Tree]) -> Container:
    kind = draw(st.sampled_from(KINDS_OF_CONTAINER))
    inner = tuple(draw(st.lists(children, min_size=int(kind in ("namedtuple", "dataclass")), max_size=3)))
    if kind == "dict":
        keys = draw(st.lists(st.text(max_size=4), min_size=len(inner), max_size=len(inner), unique=True))
        return Container(kind, inner, tuple(keys))
    return Container(kind, inner, FIELDS[: len(inner)] if kind in ("namedtuple", "dataclass") else ())


leaves: st.SearchStrategy[Tree] = st.sampled_from(["x0", "h0"]).map(Name) | st.sampled_from([None, 3, 0.5, "it's", True]).map(
    Constant
)
TYPES = {"tuple": tuple, "list": list, "dict": dict}


@settings(max_examples=150, database=None, deadline=None, derandomize=True)
@given(st.recursive(leaves, contained, max_leaves=8))
def test_the_expression_of_a_tree_is_the_value_that_it_describes(tree: Tree) -> None:
    """The same containers, and the same leaf at the end of each path."""
    names = {"x0": torch.ones(1), "h0": torch.ones(2)}
    found = evaluated(expression(tree), **names)

    for path, leaf in walk(tree):
        at = eval(f"found{path}", {"found": found})
        assert at is names[leaf.name] if isinstance(leaf, Name) else at == leaf.value
    kinds = [TYPES.get(c.kind) or getattr(support, f"{'Named' if c.kind == 'namedtuple' else 'Data'}{len(c.children)}")
             for c in containers(tree)]  # fmt: skip
    assert list(map(type, inside(found))) == kinds


def inside(found: Any) -> Iterator[Any]:
    """Yield the containers of a value, outermost first."""
    if isinstance(found, dict | list | tuple) or hasattr(found, "__dataclass_fields__"):
        yield found
        children = (
            found.values() if isinstance(found, dict) else found if isinstance(found, list | tuple) else vars(found).values()
        )
        for child in children:
            yield from inside(child)


# primals ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LEAF_LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_layout_has_the_shape_that_was_asked_for_and_the_strides_of_its_name(shape: tuple[int, ...], layout: str) -> None:
    tensor = evaluated(laid_out(shape, 1, "float32", "generic", layout))
    standard = torch.empty(shape).stride()

    assert tuple(tensor.shape) == shape
    assert tensor.count_nonzero() == tensor.numel()
    match layout:
        case "contiguous":
            assert tensor.stride() == standard
            assert tensor.untyped_storage().nbytes() == 4 * tensor.numel()
        case "transposed":
            assert tensor.stride() == torch.empty(shape[::-1]).permute(*reversed(range(len(shape)))).stride()
        case "strided":
            assert tensor.stride(-1) == 2
            assert tensor.untyped_storage().nbytes() == 8 * tensor.numel()
        case "offset":
            assert tensor.storage_offset() > 0
            assert tensor.stride() == standard
        case "expanded":
            assert tensor.stride(0) == 0
            assert tensor[1:].equal(tensor[:1].expand_as(tensor[1:]))


@pytest.mark.parametrize("layout", LEAF_LAYOUTS)
@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0,)])
def test_layouts_of_no_elements_have_the_shape_that_was_asked_for(shape: tuple[int, ...], layout: str) -> None:
    assert evaluated(laid_out(shape, 1, "float32", "generic", layout)).shape == shape


@pytest.mark.parametrize("layout", LEAF_LAYOUTS)
def test_a_scalar_has_only_one_layout(layout: str) -> None:
    assert laid_out((), 1, "float32", "generic", layout) == "values((), 1)"


def primals(*given: Primal, forward: int = 0) -> dict[str, Any]:
    """Return what the lines that make some primals make."""
    lines = input_lines(Case(None, given, ()), forward)  # type: ignore[arg-type] # no program is needed for this
    names = dict(vars(support))
    exec("\n".join(lines), names)
    return {name: names[name] for name in names if name not in vars(support) and not name.startswith("__")}


@pytest.mark.parametrize("layout", NON_LEAF_LAYOUTS)
@pytest.mark.parametrize("shape", [*SHAPES, (), (0, 3)])
def test_a_non_leaf_comes_from_a_leaf_that_requires_grad(shape: tuple[int, ...], layout: Any) -> None:
    made = primals(Primal("x0", Spec(shape, requires_grad=True), layout=layout))
    root, x = made["root_x0"], made["x0"]

    assert root.is_leaf
    assert root.requires_grad
    assert x.requires_grad
    assert not x.is_leaf
    assert tuple(x.shape) == shape
    shares = layout == "view" or (layout == "expanded-view" and shape)
    assert (storage(root) == storage(x)) == bool(shares) or not x.numel()
    if layout == "expanded-view" and shape:
        assert x.stride(0) == 0


@pytest.mark.parametrize("layout", LEAF_LAYOUTS)
@pytest.mark.parametrize("grad", [True, False])
def test_a_leaf_requires_grad_if_its_spec_does(layout: Any, grad: bool) -> None:
    x = primals(Primal("x0", Spec((2, 3), requires_grad=grad), layout=layout))["x0"]

    assert x.is_leaf
    assert x.requires_grad == grad


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "int64", "bool"])
@pytest.mark.parametrize("layout", LEAF_LAYOUTS)
def test_a_primal_has_the_dtype_of_its_spec(dtype: str, layout: Any) -> None:
    x = primals(Primal("x0", Spec((2, 3), dtype), layout=layout))["x0"]

    assert str(x.dtype) == f"torch.{dtype}"


@pytest.mark.parametrize(
    ("fill", "holds"),
    [
        ("generic", lambda x: 0 < x.abs().max() < 2 and x.count_nonzero() == x.numel()),
        ("integers", lambda x: bool((x == x.round()).all()) and len(set(x.flatten().tolist())) < x.numel()),
        ("zero", lambda x: x.count_nonzero() == 0),
        ("large", lambda x: x.abs().max() > 64),
        ("tiny", lambda x: 0 < x.abs().max() < 0.002 and x.count_nonzero() == x.numel()),
    ],
)
@pytest.mark.parametrize("layout", [*LEAF_LAYOUTS, "view", "expanded-view"])
def test_a_fill_says_what_values_are_like(fill: Any, holds: Callable[[Tensor], bool], layout: Any) -> None:
    assert holds(primals(Primal("x0", Spec((4, 4)), layout=layout, fill=fill))["x0"])


def test_an_alias_is_the_very_tensor() -> None:
    made = primals(Primal("x0", GRAD), Primal("x1", GRAD, 2, alias="x0"))

    assert made["x1"] is made["x0"]


def test_shared_storage_is_one_memory_and_two_leaves() -> None:
    made = primals(Primal("x0", GRAD), Primal("x1", GRAD, 2, share="x0"))
    x0, x1 = made["x0"], made["x1"]

    assert storage(x0) == storage(x1)
    assert x0.is_leaf
    assert x1.is_leaf
    assert (tuple(x0.shape), tuple(x1.shape)) == ((2, 3), (2, 3))
    assert set(x0.flatten().tolist()).isdisjoint(x1.flatten().tolist())


@pytest.mark.parametrize("constant", [None, True, 2, 0.5, "text"])
def test_a_python_value_is_itself(constant: Any) -> None:
    assert primals(Primal("x0", Spec((), "python"), constant=constant)) == {"x0": constant}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_every_forward_has_other_values(dtype: str) -> None:
    """So that what is kept from the first forward shows in the second."""
    for seed in range(1, 6):
        first, second = (primals(Primal("x0", Spec((2, 3), dtype), seed), forward=forward)["x0"] for forward in (0, 1))
        assert not torch.equal(first, second)


def test_every_primal_of_a_case_has_other_values(drawn: Mapping[Kind, Sequence[Case]]) -> None:
    """Those with zeros and ties aside."""
    for case in drawn["checkpoint"]:
        seeds = [p.seed for p in case.primals if p.tensor and not p.alias]
        assert len(set(seeds)) == len(seeds)


# cotangents -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LEAF_LAYOUTS)
@pytest.mark.parametrize("fill", ["generic", "one-hot", "zero"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_a_cotangent_is_shaped_like_its_output(layout: Any, fill: Any, dtype: str) -> None:
    for shape in (*SHAPES, (), (0, 3)):
        cotangent = evaluated(cotangent_source(Cotangent(0, "", 11, layout, fill), shape, dtype, 0))
        assert (tuple(cotangent.shape), str(cotangent.dtype)) == (shape, f"torch.{dtype}")


def test_a_generic_cotangent_is_never_only_ones() -> None:
    """Ones hide a gradient that is not multiplied by what arrives."""
    for shape in SHAPES:
        cotangent = evaluated(cotangent_source(Cotangent(0), shape, "float32", 0))
        assert bool((cotangent.abs() != 1).all())
        assert cotangent.count_nonzero() == cotangent.numel()


def test_every_backward_has_another_cotangent() -> None:
    first, second = (evaluated(cotangent_source(Cotangent(0), (2, 3), "float32", number)) for number in (0, 1))

    assert not torch.equal(first, second)
