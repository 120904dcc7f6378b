"""Numbers of a run: the same ones every time, unless they come from memory that nothing wrote; and those next to them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from gradcheck_plus.case import Case, Primal, Spec
from gradcheck_plus.execute import execute, reference
from gradcheck_plus.execute.build import case_source
from gradcheck_plus.record import Record
from gradcheck_plus.subject import KINDS, Kind, Subject

Write = Callable[..., Case]
Same = Callable[[Record, Record], bool]

GRAD = Spec((2, 3), requires_grad=True)
PLAIN = reference("checkpoint")


def subject(call: Callable[..., Any], kind: Kind = "checkpoint") -> Subject:
    return Subject("mine", kind, call, "strict")


def tensor(record: Record, role: Any, leaf: str) -> Tensor:
    found = record.tensors[role, leaf]
    assert found is not None
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_case_run_twice_leaves_the_same_behind(kind: Kind, drawn: Mapping[Kind, Sequence[Case]], same: Same) -> None:
    for case in drawn[kind][:150]:
        first, second = execute(case, reference(kind)), execute(case, reference(kind))
        assert same(first, second), case_source(case)


def unwritten(function: Any, *args: Any) -> Any:
    """Add what lies in memory that was never written."""
    output = function(*args)
    return output + torch.empty_like(output) * 0.5


def test_reading_memory_that_was_never_written_shows_and_repeats(write: Write, same: Same) -> None:
    case = write("h0 = sin(x0)")
    first, second = execute(case, subject(unwritten)), execute(case, subject(unwritten))

    assert tensor(first, "output", "outputs").isnan().all()
    assert same(first, second)


def test_without_poison_memory_is_handed_out_as_it_is(write: Write) -> None:
    """What an earlier case left there is not NaN, so that such a subject does not seem to repeat itself."""
    case = write("h0 = sin(x0)")
    execute(case, subject(unwritten))

    assert not tensor(execute(case, subject(unwritten), poison=False), "output", "outputs").isnan().all()


def varied(function: Any, *args: Any) -> Any:
    """Call an operation that torch cannot promise to repeat."""
    output = function(*args)
    return output + torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))


@pytest.mark.parametrize("poison", [True, False])
def test_what_may_come_out_otherwise_each_time_is_warned_of(write: Write, poison: bool) -> None:
    """Every time, and whatever memory is filled with: the oracle then asks for no equal bits."""
    case = write("h0 = sin(x0)")

    assert [execute(case, subject(varied), poison=poison).varies for _ in range(2)] == [True, True]
    assert not execute(case, PLAIN, poison=poison).varies


@pytest.mark.parametrize(("variant", "towards"), [("up", torch.inf), ("down", -torch.inf)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "strided", "offset", "expanded", "view", "expanded-view"])
def test_a_nudge_moves_every_value_by_one_ulp(write: Write, variant: Any, towards: float, dtype: str, layout: Any) -> None:
    case = write("h0 = sin(x0)", primals=[Primal("x0", Spec((2, 3), dtype, requires_grad=True), layout=layout)], dtype=dtype)
    plain, moved = (tensor(execute(case, PLAIN, variant=v), "input", "x0") for v in ("plain", variant))

    assert torch.equal(moved, torch.nextafter(plain, torch.full_like(plain, towards)))


def test_a_nudge_leaves_integers_alone(write: Write) -> None:
    case = write("h0 = index_select(x0, x1)", primals=[Primal("x0", GRAD), Primal("x1", Spec((3,), "int64"), 2)])

    assert torch.equal(tensor(execute(case, PLAIN), "input", "x1"), tensor(execute(case, PLAIN, variant="up"), "input", "x1"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_nudge_changes_gradients_by_next_to_nothing(kind: Kind, drawn: Mapping[Kind, Sequence[Case]]) -> None:
    """It is a benign variant of the reference: whatever differs is a matter of rounding."""
    for case in drawn[kind][:60]:
        records = [execute(case, reference(kind), variant=v) for v in ("plain", "up", "down")]
        raised = [r.raised for r in records]
        assert raised == [raised[0]] * 3 or all(raised)
        keys = [{key for key, t in r.tensors.items() if t is not None} for r in records]
        assert keys[0] == keys[1] == keys[2]
