"""Shrinking: a failing case of a block, made as small as Hypothesis can while it fails in the same way."""

import time
from collections.abc import Callable

import msgspec
from hypothesis import Phase
from hypothesis.strategies import SearchStrategy

from gradcheck_plus.campaign.block import generated
from gradcheck_plus.campaign.inflight import Inflight
from gradcheck_plus.campaign.judging import Verdict
from gradcheck_plus.campaign.plan import Block, Failure, Key
from gradcheck_plus.case import Case
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.traits import TRAITS, traits

class Shrunk(msgspec.Struct, frozen=True):
    """A failing case and the mismatch that was kept while it shrank; `calls` is how many cases that took."""

    case: Case
    mismatch: Mismatch
    calls: int


class _StillFails(Exception):  # noqa: N818 - a signal to Hypothesis
    """The case fails in the way that is kept."""


def shrink(
    block: Block,
    strategy: SearchStrategy[Case],
    failure: Failure,
    key: Key,
    decide: Callable[[Case], Verdict],
    inflight: Inflight,
    without: frozenset[str],
) -> Shrunk | None:
    """Shrink a failure of a block while a mismatch with this key remains.

    A smaller case may have no trait to aim at that the failing case has not: it would fail for another reason. The block is drawn again up to the failing case; what comes before is not run. Verdicts are remembered, so that Hypothesis
    never sees a case fail once and pass once. After the block's time is up the best case so far stands.

    Returns:
        The smallest failing case that was found; None if the case does not fail any more.
    """
    best: list[tuple[Case, Mismatch]] = []
    remembered: dict[str, Mismatch | None] = {}
    deadline = float("inf") if block.seconds is None else time.monotonic() + block.seconds
    count = 0

    def fails(case: Case) -> Mismatch | None:
        if not {t for t in traits(case) if TRAITS[t].drawn} <= failure.traits:
            return None
        verdict = decide(case)
        if not without.isdisjoint(verdict.traits):
            return None
        return next((m for m in verdict.faults if m.key == key), None)

    def test(case: Case) -> None:
        nonlocal count
        count += 1
        if count < failure.number or count in block.skip:
            return
        text = case.to_json()
        if text not in remembered:
            if time.monotonic() > deadline and best:
                return
            inflight.write("shrink", block.number, count)
            remembered[text] = fails(case)
        mismatch = remembered[text]
        if mismatch is not None:
            best.append((case, mismatch))
            raise _StillFails

    try:
        generated(block, strategy, test, Phase.shrink)
    except _StillFails:
        case, mismatch = best[-1]
        return Shrunk(case, mismatch, count - failure.number + 1)
    return None
