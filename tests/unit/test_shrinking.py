"""Shrinking: a failing case becomes as small and plain as it can be while it fails in the same way."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gradcheck_plus.campaign.inflight import Inflight
from gradcheck_plus.campaign.judging import Verdict
from gradcheck_plus.campaign.shrinking import Shrinker
from gradcheck_plus.case import Case, Environment, Name, Parameter, Primal, Spec
from gradcheck_plus.execute import execute, reference
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.subject import KINDS, Kind
from gradcheck_plus.traits import TRAITS, traits

Write = Callable[..., Case]
Judge = Callable[[Case], Verdict]

LOST = Mismatch("presence", "primal", "x0.grad", "tensor([1])", "None")
WRONG = Mismatch("value", "primal", "x0.grad", "1", "2")


def judging(wanted: Callable[[Case], bool], mismatch: Mismatch = LOST) -> Judge:
    """Return the judge of a subject that is faulty in some cases, of those that plain autograd runs."""

    def judge(case: Case) -> Verdict:
        fails = wanted(case) and execute(case, reference("stage-backward" if stages(case) else "checkpoint")).raised is None
        return Verdict("fault" if fails else "match", traits(case), (mismatch,) if fails else ())

    return judge


def stages(case: Case) -> bool:
    """Can the case be run as a pipeline?"""
    return all(s.region and s.form != "function" for s in case.program.segments) and case.environment.schedule != "F00"


def having(*names: str) -> Callable[[Case], bool]:
    return lambda case: traits(case) >= set(names)


def shrinker(case: Case, judge: Judge, **more: Any) -> Shrinker:
    return Shrinker(case=case, mismatch=LOST, judge=judge, inflight=Inflight(None), **more)


def shrunk(case: Case, judge: Judge, **more: Any) -> Shrinker:
    made = shrinker(case, judge, **more)
    made.run()
    return made


def drawn_with(drawn: Mapping[Kind, Sequence[Case]], *names: str, most: int) -> list[tuple[Kind, Case]]:
    return [(kind, c) for kind in KINDS for c in [c for c in drawn[kind] if traits(c) >= set(names)][:most]]


@pytest.mark.parametrize("name", ["dropout", "nested-output", "kwarg-tensor", "tied-parameter", "none-cotangent"])
def test_a_shrunk_case_shows_the_fault_in_the_same_way(drawn: Mapping[Kind, Sequence[Case]], name: str) -> None:
    """And plain autograd still runs it."""
    cases = [(k, c) for k, c in drawn_with(drawn, name, most=8) if not execute(c, reference(k)).raised]
    assert cases
    for kind, case in cases:
        made = shrunk(case, judging(having(name)))
        assert name in traits(made.case)
        assert made.mismatch == LOST
        assert made.keys == {LOST.key}
        assert execute(made.case, reference(kind)).raised is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_of_every_case_needs_one_statement(drawn: Mapping[Kind, Sequence[Case]], kind: Kind) -> None:
    """And hardly a trait that can be aimed at."""
    left: Counter[str] = Counter()
    for case in drawn[kind][:50]:
        made = shrunk(case, lambda candidate: Verdict("fault", traits(candidate), (LOST,)))
        assert made.case.size == 1, made.case.to_json()
        left.update(t for t in traits(made.case) if TRAITS[t].drawn)

    assert left.total() < 50, left


def test_a_fault_of_dropout_needs_dropout_alone(drawn: Mapping[Kind, Sequence[Case]]) -> None:
    made = [shrunk(case, judging(having("dropout"))).case for _, case in drawn_with(drawn, "dropout", most=15)]
    alone = [case.size for case in made if "in-place" not in traits(case)]  # which needs a value to change

    assert len(alone) > 20
    assert max(case.size for case in made) <= 2
    assert alone.count(1) >= 0.8 * len(alone)


def test_a_large_case_becomes_the_smallest_one_that_there_is(write: Write) -> None:
    case = write(
        ["h0 = square_linear(x0) @ a", "h1 = mul(h0, p0)", "h2 = dropout(h1; p=0.2)"],
        ["h3 = square_linear(h2) @ a", "h4 = softmax(h3)"],
        "h5 = mul(h4, h2)",
        primals=[Primal("x0", Spec((2, 4, 3), requires_grad=True), 5, "transposed", "large")],
        parameters=[Parameter("p0", (3,), 0), Parameter("p1", (3,), 0)],
        schedule="F0F1",
        hooks=("forward", "parameter"),
        existing_grad=True,
        changes={0: {"form": "function", "draws": 2}},
    )
    made = shrunk(case, judging(having("dropout"))).case

    assert traits(made) & {name for name, trait in TRAITS.items() if trait.drawn} == {"dropout"}
    assert made.size == 1
    assert made.environment == Environment()
    assert made.program.parameters == ()
    [primal] = made.primals
    assert (primal.spec.shape, primal.layout, primal.fill) == ((2, 3), "contiguous", "generic")


def test_only_a_mismatch_of_the_same_sort_counts(write: Write) -> None:
    """A case that fails otherwise is another fault."""
    case = write(["h0 = sin(x0)", "h1 = tanh(h0)", "h2 = dropout(h1)"], train=True)

    def judge(candidate: Case) -> Verdict:
        faults = [WRONG] + ([LOST] if len(candidate.program.statements) > 1 else [])
        return Verdict("fault", traits(candidate), tuple(faults))

    made = shrunk(case, judge)

    assert made.case.size == 2
    assert made.mismatch == LOST
    assert made.keys == {LOST.key, WRONG.key}


def test_the_mismatch_is_the_one_of_the_shrunk_case(write: Write) -> None:
    """Its leaf and values are those that a report shows."""
    case = write(["h0 = sin(x0)", "h1 = tanh(h0)"])

    def judge(candidate: Case) -> Verdict:
        leaf = f"{candidate.size} statements"
        return Verdict("fault", traits(candidate), (Mismatch("presence", "primal", leaf, "tensor([1])", "None"),))

    assert shrunk(case, judge).mismatch.leaf == "1 statements"


@pytest.mark.parametrize("kind", KINDS)
def test_no_step_adds_a_trait_that_can_be_aimed_at(drawn: Mapping[Kind, Sequence[Case]], kind: Kind) -> None:
    """The case might then fail for another reason."""

    def aimed(case: Case) -> set[str]:
        return {name for name in traits(case) if TRAITS[name].drawn}

    for case in drawn[kind][:30]:
        made: list[Shrinker] = []

        def judge(candidate: Case, made: list[Shrinker] = made) -> Verdict:
            assert aimed(candidate) <= aimed(made[0].case)
            fails = candidate.size > 1 or "many-segments" in traits(candidate)
            return Verdict("fault" if fails else "match", traits(candidate), (LOST,) if fails else ())

        made.append(shrinker(case, judge))
        made[0].run()


@pytest.mark.parametrize("kind", KINDS)
def test_shrinking_ends_and_no_case_is_judged_twice(drawn: Mapping[Kind, Sequence[Case]], kind: Kind) -> None:
    """Whatever the judge says: here, as good as at random."""
    for case in drawn[kind][:30]:
        judged: list[Case] = []

        def judge(candidate: Case, judged: list[Case] = judged) -> Verdict:
            judged.append(candidate)
            fails = int(candidate.digest, 16) % 3 > 0
            return Verdict("fault" if fails else "match", traits(candidate), (LOST,) if fails else ())

        made = shrunk(case, judge)
        assert len(judged) < 1000
        assert len(set(judged)) == len(judged)
        assert made.case == case or made.case in judged


def test_a_trait_that_is_not_needed_is_taken_away(write: Write) -> None:
    """One that is needed stays: what is left is what triggers the fault."""
    case = write("h0 = dropout(x0)", primals=[Primal("x0", Spec((2, 3), requires_grad=True), layout="strided")], draws_after=2)

    assert traits(shrunk(case, judging(having("strided-input"))).case) == {"strided-input"}
    assert traits(shrunk(case, judging(having("draw-after", "dropout"))).case) >= {"draw-after", "dropout"}
    assert "strided-input" not in traits(shrunk(case, judging(having("draw-after", "dropout"))).case)


def test_a_case_that_cannot_be_made_simpler_stays_as_it_is(write: Write) -> None:
    case = write("h0 = sin(x0)")
    made = shrunk(case, judging(lambda _: True))

    assert made.case == case
    assert made.keys == {LOST.key}


def test_a_candidate_that_plain_autograd_refuses_is_no_step(write: Write) -> None:
    case = write(["h0 = sin(x0)", "h1 = tanh(h0)"])
    made = shrunk(case, lambda candidate: Verdict("invalid", traits(candidate), reason="forward: RuntimeError"))

    assert made.case == case
    assert made.tried > 0


# deadline, skip, in-flight file -----------------------------------------------------------------------------------------

BIG = (["h0 = sin(x0)", "h1 = tanh(h0)", "h2 = exp(h1)", "h3 = dropout(h2)"], "h4 = sigmoid(h3)")


def test_after_the_deadline_no_candidate_is_begun(write: Write) -> None:
    case = write(*BIG)

    def never(_: Case) -> Verdict:
        raise AssertionError("a candidate was judged")

    made = shrunk(case, never, deadline=time.monotonic() - 1)

    assert (made.case, made.tried) == (case, 0)


def test_the_best_so_far_stands_when_time_runs_out(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(1000))
    monkeypatch.setattr("gradcheck_plus.campaign.shrinking.time.monotonic", lambda: float(next(now)))
    case = write(*BIG)
    made = shrunk(case, judging(lambda _: True), deadline=2.5)

    assert made.tried == 3
    assert 1 < made.case.size < case.size
    assert made.mismatch == LOST


def test_candidates_of_some_numbers_are_left_out(write: Write) -> None:
    """Those hang or kill the process; the others have the numbers that they had."""
    case = write(*BIG)
    runs: list[dict[int, Case]] = []
    for skip in (frozenset[int](), frozenset({1, 3})):
        seen: dict[int, Case] = {}
        made: list[Shrinker] = []

        def judge(candidate: Case, seen: dict[int, Case] = seen, made: list[Shrinker] = made) -> Verdict:
            seen[made[0].tried] = candidate
            return Verdict("match", traits(candidate))

        made.append(shrinker(case, judge, skip=skip))
        made[0].run()
        runs.append(seen)
    everything, rest = runs

    assert set(everything) - set(rest) == {1, 3}
    assert {n: everything[n] for n in rest} == rest


def test_the_file_in_flight_names_a_candidate_before_it_is_judged(write: Write, tmp_path: Path) -> None:
    """So that whoever finds the process hanging can leave it out."""
    path, seen = tmp_path / "inflight", []

    def judge(candidate: Case) -> Verdict:
        seen.append((Inflight.read(path), ("shrink", 0, made.tried)))
        return Verdict("match", traits(candidate))

    made = Shrinker(case=write(*BIG), mismatch=LOST, judge=judge, inflight=Inflight(str(path)))
    made.run()

    assert len(seen) > 5
    assert [said for said, expected in seen if said != expected] == []


def test_the_file_in_flight_says_what_was_begun_last(tmp_path: Path) -> None:
    path = tmp_path / "inflight"
    assert Inflight.read(path) is None

    file = Inflight(str(path))
    file.write("block", 12, 3456)
    file.write("inspect", 1, 2)

    assert Inflight.read(path) == ("inspect", 1, 2)
    Inflight(None).write("block", 1, 1)


def test_a_segment_that_nothing_else_needs_goes(write: Write) -> None:
    """The first one, the last one, and one between."""
    lines = ("h0 = sin(x0)", "h1 = swish(h0)", "h2 = relu(h1)")
    case = shrunk(write(*lines), judging(having("custom-function"))).case

    assert len(case.program.segments) == 1
    assert [s.operation for s in case.program.statements] == ["swish"]
    assert case.program.segments[0].args == (Name(case.primals[0].name),)
