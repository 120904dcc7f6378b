"""A case is pure data: the same after a trip through JSON, hashable, named by its digest."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from gradcheck_plus import case as data
from gradcheck_plus.case import (
    Call,
    Case,
    Constant,
    Container,
    Cotangent,
    Environment,
    ModuleProgram,
    Name,
    Parameter,
    Plan,
    Primal,
    Program,
    Segment,
    Spec,
    Statement,
    Value,
    Variation,
)
from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.subject import Kind

STRUCTS = [c for c in vars(data).values() if isinstance(c, type) and issubclass(c, msgspec.Struct)]
SPEC = Spec((2, 3), "bfloat16", requires_grad=True)
TREE = Container("dict", (Container("tuple", (Name("h0"), Constant("it's"))), Constant(0.1)), ('a "b"', "c"))
PRIMAL = Primal("x0", SPEC, 5, "expanded-view", "tiny", "x1", "x2", 0.5, "kwargs['x']")
STATEMENT = Statement("dropout", (Value("h0", SPEC),), ("x0",), (SPEC,), (("p", 0.1),), "dropout0", False, True, True)
SEGMENT = Segment((STATEMENT,), (TREE,), (("key", Name("x0")),), TREE, "function", False, 3, ("x0",))
COTANGENT = Cotangent(1, "['a'][0]", 7, "strided", "one-hot")
ENVIRONMENT = Environment(
    False,
    "float16",
    2,
    True,
    "FF10",
    ("input", "backward"),
    True,
    True,
    none_for_zero=True,
    reversed_keys=True,
    weights="reversed",
    reversed_parameters=True,
    repeated_input=True,
)
GENERATED = Case(
    Program((SEGMENT, SEGMENT), (Parameter("p0", (3,), 1, False, True),), "float64"), (PRIMAL,), (COTANGENT,), ENVIRONMENT
)
OWN = Case(
    ModuleProgram(
        "m:f", "m:g", (TREE,), (("key", TREE),), TREE, (Value("y0", SPEC),), features=("dropout",), draws=2, dtype="float16"
    ),
    (PRIMAL,),
    (COTANGENT,),
    plan=Plan((("aten.mul.Tensor", 1),), ("save-on-cpu",), 2, ("segment0.linear0",), 2),
)
CALLED = replace(OWN, call=Call("values", (Variation("zero-values", 1, 2),), "m:g", "m:h", "[1]"))


def parts(value: object) -> Iterator[msgspec.Struct]:
    """Yield every struct in a value."""
    if isinstance(value, msgspec.Struct):
        yield value
        for name in value.__struct_fields__:
            yield from parts(getattr(value, name))
    elif isinstance(value, tuple):
        for child in value:
            yield from parts(child)


def test_the_cases_here_leave_no_field_as_it_is_by_default() -> None:
    """A field that is added to a struct must be added to them, so that the next law is about it too."""
    told = {
        (type(part), field.name)
        for whole in (GENERATED, OWN, CALLED)
        for part in parts(whole)
        for field in msgspec.structs.fields(type(part))
        if getattr(part, field.name) != field.default
    }

    assert {(c, name) for c in STRUCTS for name in c.__struct_fields__} <= told


@pytest.mark.parametrize("case", [GENERATED, OWN, CALLED], ids=["generated", "own", "called"])
def test_every_field_survives_json(case: Case) -> None:
    assert Case.from_json(case.to_json()) == case


@pytest.mark.parametrize("constant", [None, True, 1, 0, 1.0, -0.1, 1e300, "", 'it\'s "quoted" \\ \n é'])
def test_constants_keep_their_type_in_json(constant: Any) -> None:
    """1 is not True, and not 1.0: a module may ask."""
    again = Case.from_json(replace(GENERATED, primals=(replace(PRIMAL, constant=constant),)).to_json()).primals[0].constant

    assert (type(again), again) == (type(constant), constant)


def test_drawn_cases_survive_json(drawn: Mapping[Kind, Sequence[Case]]) -> None:
    for cases in drawn.values():
        assert [c for c in cases if Case.from_json(c.to_json()) != c] == []


def test_json_is_one_line() -> None:
    assert len(GENERATED.to_json().splitlines()) == 1


JSON = GENERATED.to_json()
BROKEN = {
    "nothing": "",
    "cut": JSON[:-3],
    "more": JSON + "x",
    "list": "[]",
    "null": "null",
    "zero byte": "\x00",
    "lone surrogate": "\ud800",
    "prose": "not JSON",
    "wrong type": '{"program": 1}',
    "report": '{"schema": 1, "checks": []}',
    "wrong type inside": JSON.replace('"schedule":"FF10"', '"schedule":7'),
    "unknown tag": JSON.replace('"type":"program"', '"type":"function"'),
    "unknown choice": JSON.replace('"one-hot"', '"hot"'),
    "missing field": JSON.replace('"operation":"dropout",', ""),
    "bottomless": '{"program":' * 20_000,
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_anything_else_is_refused_with_one_clear_error(text: str) -> None:
    with pytest.raises(
        InvalidArgument, match=r"`text` is not the JSON of a case: .*Pass what `Case\.to_json` wrote\."
    ) as caught:
        Case.from_json(text)

    assert len(str(caught.value)) < 300


def test_the_error_says_where() -> None:
    with pytest.raises(InvalidArgument, match=r"\$\.environment\.schedule"):
        Case.from_json(BROKEN["wrong type inside"])


@pytest.mark.parametrize(
    "place",
    ['{"program"', '{"operation"', '{"name":"x0","spec"', '{"segment":1,"path"', '{"train"', '{"type":"container"'],
    ids=["case", "statement", "primal", "cotangent", "environment", "container"],
)
def test_a_field_that_is_not_known_is_refused(place: str) -> None:
    """A case of a later version would otherwise run as another case than the one that was found."""
    text = JSON.replace(place, place.replace("{", '{"later":1,', 1))

    assert "later" in text
    with pytest.raises(InvalidArgument, match="later"):
        Case.from_json(text)


def test_equal_cases_have_equal_hashes(drawn: Mapping[Kind, Sequence[Case]]) -> None:
    for cases in drawn.values():
        assert [c for c in cases if hash(Case.from_json(c.to_json())) != hash(c)] == []
    assert len({GENERATED, Case.from_json(GENERATED.to_json()), OWN}) == 2


def test_a_case_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        GENERATED.environment.train = True  # type: ignore[misc]


def test_the_digest_tells_cases_apart(drawn: Mapping[Kind, Sequence[Case]]) -> None:
    """Eight hexadecimal digits, the same for equal cases."""
    different = {c for cases in drawn.values() for c in cases}

    assert len({c.digest for c in different}) == len(different)
    assert all(int(c.digest, 16) >= 0 and len(c.digest) == 8 for c in different)
    assert Case.from_json(GENERATED.to_json()).digest == GENERATED.digest


def test_the_digest_is_the_same_in_every_process_and_reading_a_case_needs_no_torch() -> None:
    program = (
        "import sys; from gradcheck_plus.case import Case; "
        "print(Case.from_json(sys.stdin.read()).digest, 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=GENERATED.to_json(), capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == [GENERATED.digest, "False"]


def test_repr_names_a_case_by_its_digest() -> None:
    assert GENERATED.digest in repr(GENERATED)
    assert len(repr(GENERATED)) < 60


def test_size_is_the_number_of_statements(write: Callable[..., Case]) -> None:
    assert write("h0 = sin(x0)", ["h1 = exp(h0)", "h2 = tanh(h1)"]).size == 3
    assert OWN.size == 0


def test_a_module_program_is_one_segment_without_statements() -> None:
    [segment] = OWN.program.segments

    assert (segment.args, segment.kwargs, segment.output, segment.draws) == ((TREE,), (("key", TREE),), TREE, 2)
    assert (OWN.program.statements, OWN.program.parameters) == ((), ())


@pytest.mark.parametrize(("schedule", "forwards", "backwards"), [("F0", 1, 1), ("F00", 1, 2), ("FF10", 2, 2), ("F0F1", 2, 2)])
def test_a_schedule_counts_its_steps(schedule: str, forwards: int, backwards: int) -> None:
    environment = Environment(schedule=schedule)

    assert (environment.forwards, environment.backwards) == (forwards, backwards)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "float", "int64", "bool", "python"])
def test_a_spec_knows_which_dtypes_float_and_which_are_low(dtype: str) -> None:
    spec = Spec((2, 3, 4), dtype)

    assert spec.floating == ("float" in dtype)
    assert spec.low == (dtype in ("bfloat16", "float16", "float"))
    assert (spec.rank, spec.last, spec.channels, spec.size) == (3, 4, 3, 24)
    assert Spec(()).size == 1
    assert Spec((2, 0)).size == 0


@pytest.mark.parametrize(
    ("primal", "leaf"),
    [
        (Primal("x", Spec((2,), requires_grad=True)), True),
        (Primal("x", Spec((2,), requires_grad=True), layout="expanded"), True),
        (Primal("x", Spec((2,))), False),
        (Primal("x", Spec((2,), requires_grad=True), layout="view"), False),
        (Primal("x", Spec((2,), requires_grad=True), alias="y"), False),
        (Primal("x", Spec((), "python"), constant=2), False),
    ],
)
def test_a_primal_knows_whether_its_grad_is_read(primal: Primal, leaf: bool) -> None:
    assert primal.leaf == leaf
