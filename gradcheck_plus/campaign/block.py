"""Blocks: independent, seeded runs of Hypothesis that only generate.

Whether a case fails does not change what is drawn after it, so a block can be run again up to a case, or from a case on, and
gives the same cases; blocks can be run anywhere and in any order.
"""

import time
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from zlib import crc32

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.strategies import SearchStrategy

from gradcheck_plus.campaign.inflight import Inflight
from gradcheck_plus.campaign.judging import Verdict
from gradcheck_plus.campaign.plan import Block, Failure, Outcome
from gradcheck_plus.case import Case
from gradcheck_plus.results import Costs


def generated(block: Block, strategy: SearchStrategy[Case], test: Callable[[Case], None]) -> None:
    """Hand `test` the cases of a block."""
    config = settings(
        max_examples=block.examples,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate],
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )
    number = crc32(f"{block.seed}.{block.number}".encode())
    seed(number)(config(given(strategy)(test)))()


def run_block(
    block: Block,
    strategy: SearchStrategy[Case],
    decide: Callable[[Case], Verdict],
    measure: Callable[[Case], Costs],
    inflight: Inflight,
    without: frozenset[str],
) -> Outcome:
    """Run one block. Cases with a trait of `without` are not run; the costs of the first match are measured."""
    outcome, deadline, numbers = Outcome(), _deadline(block.seconds), iter(range(1, block.examples + 1))
    excused: Counter[tuple[str, str, str, str, str]] = Counter()

    def test(case: Case) -> None:
        number = next(numbers, 0)
        if not number or (block.stop and number >= block.stop):
            return
        if inflight.stopped:
            outcome.interrupted = True
            return
        if time.monotonic() > deadline:
            outcome.unfinished = True
            return
        inflight.write("block", block.number, number)
        if number in block.skip:
            return
        verdict = decide(case)
        if without and not without.isdisjoint(verdict.traits):
            return
        _count(outcome, excused, verdict)
        if verdict.name == "fault":
            outcome.failures.append(Failure(block.number, number, case, verdict.faults, verdict.traits))
        elif verdict.name == "match" and not outcome.costs.cases:
            outcome.costs = measure(case)

    generated(block, strategy, test)
    outcome.excused = sorted(excused.items())
    return outcome


def _deadline(seconds: float | None) -> float:
    return float("inf") if seconds is None else time.monotonic() + seconds


def _count(outcome: Outcome, excused: Counter[tuple[str, str, str, str, str]], verdict: Verdict) -> None:
    counts = outcome.counts
    counts.run += 1
    if verdict.name == "invalid":
        counts.invalid += 1
        outcome.reasons = [*outcome.reasons, verdict.reason.splitlines()[0]][:3]
        return
    counts.kinks += verdict.kinks
    counts.refused += verdict.name == "refused"
    counts.vacuous += verdict.vacuous
    counts.judged += verdict.name != "refused" and not verdict.vacuous
    judged = sorted(verdict.judged)
    for trait in judged:
        outcome.traits[trait] = outcome.traits.get(trait, 0) + 1
    outcome.pairs.update(combinations(judged, 2))
    excused.update({(e.trait, e.effect, m.kind, m.role, e.source) for m, e in verdict.excused})


def case_of(block: Block, strategy: SearchStrategy[Case], number: int) -> Case:
    """Return a case of a block by its number, from 1, without running any."""
    cases: list[Case] = []

    def test(case: Case) -> None:
        cases.append(case)

    generated(block, strategy, test)
    return cases[number - 1]
