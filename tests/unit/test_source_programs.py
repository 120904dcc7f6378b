"""Programs as Python source: every one compiles, and does what the case says."""

import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
from msgspec.structs import replace
from torch import Tensor, nn

from gradcheck_plus import support as printed
from gradcheck_plus.case import Case, Constant, Container, Name, Parameter, Primal, Segment, Spec
from gradcheck_plus.execute.build import case_source
from gradcheck_plus.record import flatten
from gradcheck_plus.source import input_lines, primal_names, program_source
from gradcheck_plus.subject import Kind

#: It has no annotations: it is printed into repros, which a person reads.
support: Any = printed
Write = Callable[..., Case]

FIELDS = ("first", "second", "third")
GRAD = Spec((2, 3), requires_grad=True)


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
        text = program_source(case.program, calls="none")
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
