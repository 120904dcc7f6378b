"""What `cases` is asked for is what it draws; what it cannot draw it refuses, and says what it can."""

import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from gradcheck_plus import strategies as gst
from gradcheck_plus.case import Case, Program
from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.operations import CATALOGUE, Operation
from gradcheck_plus.strategies.cases import DTYPES
from gradcheck_plus.strategies.swarms import order
from gradcheck_plus.subject import KINDS, Kind
from gradcheck_plus.traits import drawable, traits

#: What takes the place of an operation that does not fit, and what makes sure of a gradient.
ALWAYS = {"sin", "scale", "mul"}


def drawn(number: int, kind: Kind = "checkpoint", *, at: int = 1, **asked: Any) -> list[Case]:
    """Return some cases, the same ones every time."""
    found: list[Case] = []

    @seed(at)
    @settings(
        max_examples=number, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(case=gst.cases(kind, **asked))
    def keep(case: Case) -> None:
        found.append(case)

    keep()
    return found


# obeyed -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "trait"), [(kind, trait) for kind in KINDS for trait in drawable(kind)])
def test_a_trait_that_is_aimed_at_is_hit(kind: Kind, trait: str) -> None:
    """Within sixty cases that aim at nothing else."""
    assert any(trait in traits(case) for case in drawn(60, kind, traits=[trait]))


def test_several_traits_that_are_aimed_at_meet() -> None:
    wanted = {"dropout", "draw-before", "nested-output"}
    found = [traits(case) for case in drawn(60, traits=wanted)]

    assert sum(wanted <= t for t in found) >= 3


def test_any_two_traits_are_often_among_the_first_of_a_swarm_together() -> None:
    """Whatever their names have in common: fifty of two hundred times would be chance."""
    every = drawable("checkpoint")
    firsts = [frozenset(order(every, number, number // 2)[: len(every) // 2]) for number in range(200)]

    assert [pair for pair in combinations(every, 2) if sum(first.issuperset(pair) for first in firsts) < 20] == []


#: These come about in other ways too: a sum has no dimension, a Python value may be `None`, a non-leaf may be expanded.
INCIDENTAL = {
    "scalar-value", "none-input", "expanded-input", "outer-use", "tied-across-segments", "several-gradients",
    "unused-parameter", "unused-input",
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_traits_that_are_left_out_do_not_occur(kind: Kind) -> None:
    """None of them, in any case, whatever else is drawn."""
    every = drawable(kind)
    for start in range(4):
        without = set(every[start::4])
        found = {t for case in drawn(60, kind, without=without) for t in traits(case)}
        assert found & without <= INCIDENTAL


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_only_the_dtypes_that_are_asked_for_occur(kind: Kind, dtype: str) -> None:
    """Of floating values; integers, booleans and what only the run decides aside."""
    for case in drawn(60, kind, dtypes=[dtype]):
        assert isinstance(case.program, Program)
        values = [p.spec for p in case.primals] + [r.spec for s in case.program.statements for r in s.results]
        assert {s.dtype for s in values if s.floating} <= {dtype}, case.to_json()
        assert case.program.dtype == dtype
        assert case.environment.autocast in ("", dtype)


def test_every_dtype_occurs_by_default() -> None:
    found = {p.spec.dtype for case in drawn(200) for p in case.primals} | {c.environment.autocast for c in drawn(200)}

    assert {"float32", "float64", "bfloat16", "float16", "int64", "bool", "python"} <= found


@pytest.mark.parametrize("operations", [["sin"], ["softmax", "linear"], ["dropout", "batch_norm", "relu_"]])
@pytest.mark.parametrize("kind", KINDS)
def test_only_the_operations_that_are_asked_for_occur(kind: Kind, operations: list[str]) -> None:
    """Beside those that stand in for one that does not fit."""
    found = {s.operation for case in drawn(60, kind, operations=operations) for s in case.program.statements}

    assert set(operations) <= found
    assert found <= set(operations) | ALWAYS


@pytest.mark.parametrize("most", [1, 2, 9])
@pytest.mark.parametrize("kind", KINDS)
def test_a_segment_has_at_most_so_many_statements(kind: Kind, most: int) -> None:
    """One more where nothing else would require grad."""
    sizes = [len(s.statements) for case in drawn(100, kind, max_statements=most) for s in case.program.segments]

    assert max(sizes) <= most + 1
    assert sum(size > most for size in sizes) < len(sizes) / 4
    assert max(sizes) >= most


def test_an_operation_of_ones_own_is_drawn(request: pytest.FixtureRequest) -> None:
    from gradcheck_plus.operations import register

    register(Operation("my_square", "mine", "{a} ** 2"))
    request.addfinalizer(lambda: CATALOGUE.remove("my_square"))

    assert any(s.operation == "my_square" for case in drawn(60, operations=["my_square"]) for s in case.program.statements)


# refused ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"kind": "checkpoints"}, "is not a kind of subject. Write one of checkpoint, wrapper,"),
        ({"traits": ["droput"]}, "`trait`='droput' is not known. Did you mean 'dropout'?"),
        ({"without": ["droput"]}, "`trait`='droput' is not known. Did you mean 'dropout'?"),
        ({"traits": ["reversed-keys"]}, "`trait`='reversed-keys' cannot be aimed at for `kind`='checkpoint'"),
        ({"traits": ["fan-out"]}, "`trait`='fan-out' cannot be aimed at"),
        (
            {"traits": ["float64"], "dtypes": ["float32"]},
            "cannot be aimed at for `kind`='checkpoint' with `dtypes`=('float32',)",
        ),
        ({"traits": ["eval"], "without": ["eval"]}, "`trait`='eval'"),
        ({"traits": ["dropout", "eval"]}, "'dropout'"),
        ({"operations": ["sinn"]}, "`operation`='sinn' is not known. Did you mean 'sin'"),
        ({"dtypes": ["float8"]}, "`dtype`='float8' is not drawn. Write one of float32, float64, bfloat16, float16."),
        ({"dtypes": []}, "`dtypes`=() leaves nothing to draw. Write some of float32, float64, bfloat16, float16."),
        ({"max_statements": 0}, "`max_statements`=0 leaves nothing to run. Write at least 1."),
        ({"max_statements": -3}, "`max_statements`=-3"),
    ],
    ids=str,
)
def test_what_cannot_be_drawn_is_refused(asked: dict[str, Any], said: str) -> None:
    """When it is asked for, not when it is drawn."""
    with pytest.raises(InvalidArgument) as caught:
        gst.cases(**asked)

    assert said in str(caught.value)


@pytest.mark.parametrize("argument", ["traits", "without", "operations", "dtypes"])
def test_a_single_name_is_no_list_of_names(argument: str) -> None:
    """``traits="dropout"`` is a slip: its letters are no traits."""
    asked: dict[str, Any] = {argument: {"dtypes": "float32", "operations": "sin"}.get(argument, "dropout")}
    with pytest.raises(InvalidArgument, match="is not"):
        drawn(1, "checkpoint", at=1, **asked)


# the seed ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_means_the_same_cases_every_time(kind: Kind) -> None:
    assert drawn(60, kind, at=5) == drawn(60, kind, at=5)
    assert drawn(60, kind, at=5) != drawn(60, kind, at=6)


def test_cases_do_not_repeat() -> None:
    """Hypothesis likes to try variants of what it drew last."""
    found = drawn(200)

    assert len(set(found)) > 190


PROGRAM = """
import sys
if len(sys.argv) > 1:
    sys.path.insert(0, sys.argv[1])
    import local_constants
from hypothesis import HealthCheck, Phase, given, seed, settings
from gradcheck_plus import strategies as gst

@seed(7)
@settings(max_examples=40, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(case=gst.cases())
def show(case):
    print(case.digest)

show()
"""


def test_a_seed_means_the_same_cases_in_every_process(tmp_path: Path) -> None:
    """Whatever local modules are imported: Hypothesis mixes their constants into what it draws."""
    constants = "\n".join(f"A{n} = {n * 7 % 101}\nB{n} = {n * 1009}\nC{n} = 'text{n}'\nD{n} = {n / 7}" for n in range(60))
    (tmp_path / "local_constants.py").write_text(constants, encoding="utf-8")
    runs = [
        subprocess.run([sys.executable, "-c", PROGRAM, *more], capture_output=True, text=True, check=True).stdout.split()
        for more in ([], [str(tmp_path)])
    ]

    assert runs[0] == runs[1]
    assert runs[0] == [case.digest for case in drawn(40, at=7)]
