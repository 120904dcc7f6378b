"""Distinct faults: each failing case is the doing of a known one, or the next one is explained."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from gradcheck_plus.campaign.distinct import MOST_FAULTS, MOST_LOOKS, Distinct, fingerprint_of, second_looks
from gradcheck_plus.campaign.plan import Described, Explained, Failure, Inspected, Key, Outcome, Search
from gradcheck_plus.case import Case
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.results import Counts, Tool
from gradcheck_plus.settings import Settings
from gradcheck_plus.traits import traits

Write = Callable[..., Case]

LOST = Mismatch("presence", "primal", "x0.grad", "tensor", "None")
WRONG = Mismatch("value", "parameter", "params['p0'].grad", "tensor(1.)", "tensor(2.)")
RAISES = Mismatch("raises", "call", "backward", "no exception", "RuntimeError: no", error="RuntimeError")
TOOL = Tool("0", "2", "6", "3", "cpu")


class StubRunner:
    """Explains a failure as what it was told: the case that is left, by the traits of the case that failed."""

    def __init__(self, shrunk: Callable[[Failure], Case | None] = lambda f: f.case, also_fails: tuple[str, ...] = ()) -> None:
        self.shrunk, self.also_fails = shrunk, also_fails
        self.held: list[str] = []

    def describe(self) -> Described:
        return Described(TOOL, "mine", "remat:checkpoint", "strict", "", ())

    def explain(self, failure: Failure, key: Key, seconds: float | None, *, hold: str = "") -> Explained | None:
        self.held.append(hold)
        case = self.shrunk(failure)
        mismatch = next(m for m in failure.mismatches if m.key == key)
        return Explained(case, mismatch, tuple(sorted(traits(case))), (key,)) if case else None

    def inspect(self, case: Case, mismatch: Mismatch) -> Inspected:
        return Inspected(also_fails=self.also_fails)

    def block(self, block: Any) -> Any: ...

    def case_of(self, block: Any, number: int) -> Any: ...


def failing(case: Case, *mismatches: Mismatch, number: int = 1) -> Failure:
    return Failure(0, number, case, mismatches, traits(case))


def distinct(runner: StubRunner, **settings: Any) -> Distinct:
    return Distinct(Search(kind="checkpoint", settings=Settings(**settings)), runner, lambda: None, lambda: None)


def found(failures: Iterable[Failure], runner: StubRunner | None = None, **settings: Any) -> list[tuple[str, ...] | None]:
    """Return the triggers of the faults that are listed."""
    d = distinct(runner or StubRunner(), keep_going=True, **settings)
    d.explain(list(failures))
    return [fault.trigger for fault in d.faults]


def test_a_case_that_has_what_triggers_a_fault_is_that_fault_again(write: Write) -> None:
    small, large = write(["h0 = dropout(x0)"]), write(["h0 = dropout(x0)", "h1 = gelu_module(h0)"])

    assert found([failing(small, LOST), failing(large, LOST, number=2)]) == [tuple(traits(small))]


def test_a_mismatch_of_another_kind_is_another_fault(write: Write) -> None:
    case = write(["h0 = dropout(x0)"])

    assert len(found([failing(case, LOST), failing(case, RAISES, number=2)])) == 2


def test_a_wrong_gradient_of_a_parameter_and_of_a_primal_may_be_one_fault(write: Write) -> None:
    case = write(["h0 = dropout(x0)"])
    primal = Mismatch("value", "primal", "x0.grad", "tensor(1.)", "tensor(2.)")

    assert len(found([failing(case, WRONG), failing(case, primal, number=2)])) == 1


def test_a_wrong_gradient_that_needs_less_is_listed_beside_the_other(write: Write) -> None:
    """Two causes can stand in one program."""
    rich, poor = write(["h0 = dropout(x0)", "h1 = exp(h0)"]), write(["h0 = sin(x0)"])

    assert len(found([failing(rich, WRONG), failing(poor, WRONG, number=2)])) == 2


def test_an_exception_that_needs_less_takes_the_place_of_the_other(write: Write) -> None:
    """And was found as early as that one."""
    rich, poor = write(["h0 = dropout(x0)"]), write(["h0 = sin(x0)"])
    d = distinct(StubRunner(), keep_going=True)
    d.explain([failing(rich, RAISES, number=3), failing(poor, RAISES, number=7)])

    assert [(fault.trigger, fault.cases_to_find) for fault in d.faults] == [((), 3)]


def test_one_fault_is_enough_unless_more_are_wished_for(write: Write) -> None:
    failures = [failing(write(["h0 = dropout(x0)"]), LOST), failing(write(["h0 = sin(x0)"]), RAISES, number=2)]
    d = distinct(StubRunner())
    d.explain(failures)

    assert len(d.faults) == 1
    assert len(found(failures)) == 2


def test_a_fault_that_torch_shows_too_is_not_enough(write: Write) -> None:
    """Perhaps it is nothing of the implementation's own."""
    d = distinct(StubRunner(also_fails=("torch-checkpoint",)))
    d.explain([failing(write(["h0 = dropout(x0)"]), LOST), failing(write(["h0 = sin(x0)"]), RAISES, number=2)])

    assert len(d.faults) == 2


@pytest.mark.parametrize("kind", ["hang", "crash"])
def test_what_hangs_or_kills_the_process_is_not_run_again(write: Write, kind: Any) -> None:
    runner = StubRunner()

    assert found([failing(write(["h0 = sin(x0)"]), Mismatch(kind, "call", "forward", "an end", "none"))], runner) == [None]
    assert runner.held == []


def test_a_failure_that_cannot_be_shown_again_is_listed_as_it_was_met(write: Write) -> None:
    assert found([failing(write(["h0 = sin(x0)"]), LOST)], StubRunner(lambda _: None)) == [None]


def test_no_more_than_so_many_faults_are_listed(write: Write) -> None:
    case = write(["h0 = sin(x0)"])
    failures = [
        failing(case, Mismatch("raises", "call", "backward", "", f"E{n}", error=f"E{n}"), number=n) for n in range(1, 60)
    ]

    assert len(found(failures)) == MOST_FAULTS


def test_a_trait_with_which_cases_fail_more_often_is_looked_at_again(write: Write) -> None:
    """Behind a fault of every second case stands one of dropout."""
    plain, dropped = write(["h0 = sin(x0)"]), write(["h0 = dropout(x0)"])
    failures = [failing(plain, RAISES, number=n) for n in (1, 3)] + [failing(dropped, RAISES, number=n) for n in (5, 6)]
    outcome = Outcome(counts=Counts(run=10, judged=10), traits={"dropout": 2}, failures=failures)
    known = Explained(plain, RAISES, (), (RAISES.key,))

    looks = second_looks(outcome, [known])

    assert [(trait, failure.number) for failure, _, trait in looks] == [("dropout", 5), ("dropout", 6)]
    assert len(looks) <= MOST_LOOKS


def test_a_second_look_lists_a_fault_that_keeps_the_trait(write: Write) -> None:
    """A wrong gradient of its own; an exception that one is known for already stays one."""
    plain, dropped = write(["h0 = sin(x0)"]), write(["h0 = dropout(x0)"])
    for mismatch, triggers in ((WRONG, [(), ("dropout",)]), (RAISES, [()])):
        runner = StubRunner()
        d = distinct(runner, keep_going=True)
        failures = [failing(plain, mismatch), failing(dropped, mismatch, number=2)]
        d.explain(failures)
        d.look_behind(Outcome(counts=Counts(run=9, judged=9), traits={"dropout": 1}, failures=failures))

        assert "dropout" in runner.held
        assert [fault.trigger for fault in d.faults] == triggers


@pytest.mark.parametrize(("blamed", "listed"), [("dropout", [(), ("dropout",)]), ("sin", [()])])
def test_a_second_look_may_find_an_operation_to_blame(write: Write, blamed: str, listed: list[tuple[str, ...]]) -> None:
    """What a wrong gradient needs of operations is new; what else it needs may be a matter of how it was shrunk."""
    plain, evaluated = write(["h0 = sin(x0)"]), write(["h0 = sin(x0)", "h1 = tanh(h0)", "h2 = neg(h1)"], train=False)
    left = {plain: plain, evaluated: write([f"h0 = {blamed}(x0)"], existing_grad=blamed == "sin")}
    runner = StubRunner(lambda failure: left[failure.case])
    d = distinct(runner, keep_going=True)
    failures = [failing(plain, WRONG), failing(evaluated, WRONG, number=2)]
    d.explain(failures[:1])
    d.look_behind(Outcome(counts=Counts(run=9, judged=9), traits={"eval": 1}, failures=failures))

    assert runner.held == ["", "eval"]
    assert [fault.trigger for fault in d.faults] == listed


def test_operations_are_looked_at_before_anything_else(write: Write) -> None:
    """In wrong gradients, however seldom cases with them fail."""
    plain, dropped = write(["h0 = sin(x0)"], train=False), write(["h0 = dropout(x0)"])
    failures = [failing(plain, WRONG), failing(dropped, WRONG, number=2)]
    outcome = Outcome(counts=Counts(run=9, judged=9), traits={"dropout": 9, "eval": 1}, failures=failures)

    assert [trait for *_, trait in second_looks(outcome, [])] == ["dropout", "eval"]


def test_a_fingerprint_names_subject_kind_role_and_trigger() -> None:
    names = {
        fingerprint_of("a", "value", "primal", ("x",)),
        fingerprint_of("b", "value", "primal", ("x",)),
        fingerprint_of("a", "dtype", "primal", ("x",)),
        fingerprint_of("a", "value", "buffer", ("x",)),
        fingerprint_of("a", "value", "primal", ("y",)),
    }

    assert len(names) == 5
    assert all(len(name) == 12 for name in names)
