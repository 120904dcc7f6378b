"""Programs and points as Python source: every one compiles, and does what the case says."""

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from torch import Tensor, nn

from gradcheck_plus import support as printed
from gradcheck_plus.case import (
    Case,
    Constant,
    Container,
    Cotangent,
    Name,
    Parameter,
    Primal,
    Segment,
    Spec,
    Tree,
)
from gradcheck_plus.case.point import LEAF_LAYOUTS, NON_LEAF_LAYOUTS
from gradcheck_plus.case.trees import ContainerKind, containers, walk
from gradcheck_plus.execute.build import case_source
from gradcheck_plus.record import flatten, storage
from gradcheck_plus.source import cotangent_source, expression, input_lines, laid_out, primal_names, program_source
from gradcheck_plus.subject import Kind

#: It has no annotations: it is printed into repros, which a person reads.
support: Any = printed
Write = Callable[..., Case]

SHAPES = ((2, 3), (3,), (2, 2, 4), (2, 3, 2, 2), (4, 2))
FIELDS = ("first", "second", "third")
KINDS_OF_CONTAINER: tuple[ContainerKind, ...] = get_args(ContainerKind)
GRAD = Spec((2, 3), requires_grad=True)


def evaluated(text: str, **names: Any) -> Any:
    return eval(text, {**vars(support), **names})


def space(case: Case) -> dict[str, Any]:
    """Return the namespace in which a case's source has run."""
    made = {**vars(support), "__name__": "printed"}
    exec(compile(case_source(case), "<printed>", "exec"), made)
    return made


def made(case: Case) -> tuple[nn.Module, dict[str, Any]]:
    """Return the filled model of a case and the primals of its first forward."""
    found = space(case)
    model = found["Model"]()
    support.fill(model)
    inputs = found["inputs0"]()
    return model, {p.name: inputs[p.name] for p in case.primals}


def run(case: Case, call: Callable[..., Any] = support.plain_checkpoint) -> Any:
    """Return what a case's model returns for its first primals."""
    model, primals = made(case)
    torch.manual_seed(3)
    return model(call, **{name: primals[name] for name in primal_names(case.program)})


def value(seed: int, shape: tuple[int, ...] = (2, 3)) -> Tensor:
    made: Tensor = support.values(shape, seed)
    return made


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


# programs ---------------------------------------------------------------------------------------------------------------


def test_every_printed_program_compiles_and_makes_a_model(drawn: Mapping[Kind, Sequence[Case]]) -> None:
    for case in itertools.chain(*drawn.values()):
        model = space(case)["Model"]()
        assert len(list(model.children())) == len(case.program.segments), case_source(case)


def test_what_a_case_runs_is_what_a_program_prints(drawn: Mapping[Kind, Sequence[Case]]) -> None:
    """Reports print this text."""
    for case in drawn["checkpoint"][:100]:
        assert case_source(case).startswith(program_source(case.program))


def test_a_stage_needs_no_model_forward(drawn: Mapping[Kind, Sequence[Case]]) -> None:
    for case in drawn["stage-backward"][:100]:
        text = program_source(case.program, forward=False)
        compile(text, "<printed>", "exec")
        assert "checkpoint" not in text


def test_no_line_of_a_program_is_repeated_state(drawn: Mapping[Kind, Sequence[Case]]) -> None:
    """Each module and parameter is made once, so that what is tied is one thing."""
    for case in itertools.chain(*drawn.values()):
        model = space(case)["Model"]()
        made = {s.module for s in case.program.statements if s.module and s.owner}
        sequential = {s.module for segment in case.program.segments if segment.form == "sequential" for s in segment.statements}
        named = {name.split(".")[1] for name, _ in model.named_modules() if name.count(".") == 1}
        assert made - sequential == {name for name in named if not name.isdigit()}


def test_a_program_computes_what_its_statements_say(write: Write) -> None:
    case = write(["h0 = sin(x0)", "h1 = mul(h0, p0)"], "h2 = scale(h1; c=0.5)", parameters=[Parameter("p0", (3,), 0)])
    first, second = run(case)
    expected = value(1).sin() * value(50, (3,)) / 2

    assert torch.equal(first, expected)
    assert torch.equal(second, expected * 0.5)


def test_primals_come_in_the_order_of_their_first_use(write: Write, drawn: Mapping[Kind, Sequence[Case]]) -> None:
    """Which is how the model is called."""
    primals = [Primal(f"x{i}", GRAD, i + 1) for i in range(3)]
    case = write("h0 = mul(x2, x0)", "h1 = mul(h0, x1)", primals=primals)

    assert primal_names(case.program) == ["x2", "x0", "x1"]
    for other in (case, *drawn["checkpoint"]):
        parameters = list(inspect.signature(space(other)["Model"].forward).parameters)
        assert parameters == ["self", "checkpoint", *primal_names(other.program)]
        assert set(primal_names(other.program)) <= {p.name for p in other.primals}


def calls(case: Case) -> list[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """Return what a case hands to the implementation under test."""
    found = []

    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        found.append((function, args, kwargs))
        return function(*args, **kwargs)

    run(case, call)
    return found


def test_an_implementation_is_called_with_the_arguments_of_each_region(write: Write) -> None:
    primals = [Primal(f"x{i}", GRAD, i + 1) for i in range(3)]
    nested = Container("dict", (Name("x1"), Constant(None)), ("a", "b"))
    case = write(
        ["h0 = mul(x0, x1)", "h1 = mul(h0, x2)"],
        "h2 = sin(h1)",
        "h3 = exp(h2)",
        primals=primals,
        changes={0: {"args": (Name("x0"), nested), "kwargs": (("x2", Name("x2")),)}, 1: {"region": False}},
    )
    [(_, args, kwargs), (_, last, none)] = calls(case)

    assert [flatten(a)[0] for a in (args, kwargs, last, none)] == [
        "(tensor, {'a': tensor, 'b': None})", "{'x2': tensor}", "(tensor)", "{}",
    ]  # fmt: skip
    assert torch.equal(args[1]["a"], value(2))
    assert torch.equal(kwargs["x2"], value(3))


def test_what_is_called_is_a_module_a_function_or_a_bare_sequential(write: Write) -> None:
    lines = ("h0 = linear(x0)", "h1 = tanh_module(h0)", "h2 = tanh_module(h1)")
    case = write(*lines, changes={1: {"form": "function"}, 2: {"form": "sequential"}})
    module, function, sequential = (function for function, _, _ in calls(case))

    assert isinstance(module, nn.Module)
    assert inspect.isfunction(function)
    assert type(sequential) is nn.Sequential
    assert [type(layer) for layer in sequential] == [nn.Tanh]


def test_a_value_may_be_passed_by_position_and_by_keyword(write: Write) -> None:
    """As two names may become one while a case shrinks."""
    case = write("h0 = mul(x0, x0)", changes={0: {"kwargs": (("x0", Name("x0")),)}})

    assert torch.equal(run(case), value(1) * value(1))


def test_a_value_may_be_passed_twice_by_position(write: Write) -> None:
    case = write("h0 = mul(x0, x0)", changes={0: {"args": (Name("x0"), Name("x0"), Container("list", (Name("x0"),)))}})

    assert torch.equal(run(case), value(1) * value(1))


def test_a_shared_module_is_one_module(write: Write) -> None:
    """In one segment and in two."""
    case = write(["h0 = square_linear(x0) @ a", "h1 = square_linear(h0) @ a"], "h2 = square_linear(h1) @ a")
    model, _ = made(case)

    assert model.get_submodule("segment0.a") is model.get_submodule("segment1.a")
    assert len(list(model.parameters())) == 2
    linear = model.get_submodule("segment0.a")
    assert torch.equal(run(case)[1], linear(linear(linear(value(1)))))


def test_a_shared_parameter_is_one_parameter(write: Write) -> None:
    case = write("h0 = mul(x0, p0)", "h1 = mul(h0, p0)", parameters=[Parameter("p0", (3,), 1)])
    model, _ = made(case)

    assert model.get_parameter("segment0.p0") is model.get_parameter("segment1.p0")
    assert [name for name, _ in model.named_parameters()] == ["segment0.p0"]


def test_a_shared_buffer_is_a_buffer_wherever_it_is_used(write: Write) -> None:
    """Or it would stay behind when the model is moved to another device or dtype."""
    case = write(
        "h0 = mul(x0, p0)",
        "h1 = mul(h0, p0)",
        parameters=[Parameter("p0", (3,), 0, trainable=False, buffer=True)],
    )
    model, _ = made(case)
    model.to(torch.float64)

    buffers = [model.get_buffer(f"segment{index}.p0") for index in range(2)]
    assert torch.equal(*buffers)
    assert {b.dtype for b in buffers} == {torch.float64}


def test_a_shared_module_is_made_where_it_is_owned(write: Write) -> None:
    case = write("h0 = square_linear(x0) @ a", "h1 = square_linear(h0) @ a")
    text = program_source(case.program)

    assert text.count("nn.Linear(3, 3)") == 1
    assert "self.segment1.a = self.segment0.a" in text


def test_frozen_parameters_require_no_grad(write: Write) -> None:
    parameters = [Parameter("p0", (3,), 0, trainable=False), Parameter("p1", (3,), 0)]
    case = write(
        ["h0 = square_linear(x0) @ a frozen", "h1 = square_linear(h0) @ b", "h2 = mul(h1, p0)", "h3 = mul(h2, p1)"],
        parameters=parameters,
    )
    model, _ = made(case)

    flags = {name: p.requires_grad for name, p in model.named_parameters()}
    assert flags == {
        "segment0.a.weight": False, "segment0.a.bias": False, "segment0.b.weight": True, "segment0.b.bias": True,
        "segment0.p0": False, "segment0.p1": True,
    }  # fmt: skip


def test_a_buffer_is_no_parameter(write: Write) -> None:
    case = write("h0 = mul(x0, p0)", parameters=[Parameter("p0", (3,), 0, trainable=False, buffer=True)])
    model, _ = made(case)

    assert list(model.parameters()) == []
    assert [name for name, _ in model.named_buffers()] == ["segment0.p0"]
    assert model.get_buffer("segment0.p0").count_nonzero() == 3


def test_an_island_runs_without_grad_mode(write: Write) -> None:
    inside, after = run(write(["h0 = sin(x0) no_grad", "h1 = mul(x0, h0)"], changes={0: {"output": returned("h0", "h1")}}))

    assert not inside.requires_grad
    assert after.requires_grad


def returned(*names: str) -> Container:
    return Container("tuple", tuple(map(Name, names)))


def test_random_numbers_are_drawn_before_the_call(write: Write) -> None:
    case = write("h0 = noise(x0)", "h1 = noise(h0)", changes={0: {"draws": 2}, 1: {"draws": 3}})
    first, second = run(case)
    torch.manual_seed(3)
    torch.rand(2)
    noise = torch.rand(2, 3)
    torch.rand(3)

    assert torch.equal(first, value(1) * noise)
    assert torch.equal(second, first * torch.rand(2, 3))


@pytest.mark.parametrize("kind", ["dict", "list"])
def test_the_caller_may_put_other_tensors_into_its_containers(write: Write, kind: Any) -> None:
    """Just after the call, in place; what the call saw has not changed."""
    holder = Container(kind, (Name("x0"), Name("x1")), ("a", "b") if kind == "dict" else ())
    primals = [Primal(f"x{i}", GRAD, i + 1) for i in range(2)]
    case = write("h0 = mul(x0, x1)", primals=primals, changes={0: {"args": (holder,), "rebinds": ("x1",)}})
    passed = []

    def call(function: Any, container: Any) -> Any:
        passed.append(container)
        return function(container)

    assert torch.equal(run(case, call), value(1) * value(2))
    [container] = passed
    first, second = container.values() if kind == "dict" else container
    assert torch.equal(first, value(1))
    assert torch.equal(second, value(2) + 1)
    assert not second.requires_grad


@pytest.mark.parametrize("kind", ["tuple", "namedtuple", "dataclass"])
def test_other_containers_are_unpacked_too(write: Write, kind: Any) -> None:
    fields = FIELDS[:2] if kind != "tuple" else ()
    inner = Container(kind, (Name("x1"), Constant(3)), fields)
    case = write(
        "h0 = mul(x0, x1)",
        primals=[Primal(f"x{i}", GRAD, i + 1) for i in range(2)],
        changes={0: {"args": (Container(kind, (inner, Name("x0")), fields),)}},
    )

    assert torch.equal(run(case), value(1) * value(2))


def test_what_later_segments_use_is_taken_out_of_the_output(write: Write) -> None:
    nested = Container("dataclass", (Constant("text"), Container("dict", (Name("h1"), Name("h0")), ("a", "b"))), FIELDS[:2])
    case = write(["h0 = sin(x0)", "h1 = tanh(h0)"], "h2 = mul(h0, h1)", changes={0: {"output": nested}})
    output, last = run(case)

    assert flatten(output)[0] == "Data2(first='text', second={'a': tensor, 'b': tensor})"
    assert torch.equal(last, value(1).sin() * value(1).sin().tanh())


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


def test_a_case_without_a_program_of_its_own_calls_the_factory() -> None:
    """A user's module is called as the sample call is."""
    from gradcheck_plus.case import ModuleProgram

    program = ModuleProgram("m:f", "m:g", (Name("x0"),), (("y", Name("x1")),), Name("y0"), ())
    text = program_source(program)

    assert "self.segment0 = factory()" in text
    assert "checkpoint(self.segment0, x0, y=x1)" in text
    given = Primal("x0", GRAD, sample="args[0]")
    assert input_lines(Case(program, (given,), ()), 0) == ["x0 = args[0].detach().clone().requires_grad_()"]


def test_a_segment_without_state_has_no_constructor(write: Write) -> None:
    case = write("h0 = sin(x0)")
    segment: Segment = case.program.segments[0]

    assert program_source(replace(case.program, segments=(segment,))).count("__init__") == 2
