"""Shrinking: a failing case, made as small and plain as it can be while it fails in the same way.

Hypothesis shrinks the choices that a case was drawn from; where one choice decides what the next ones mean, as in a program,
that is slow and stops early. This works on the case itself, which is data: take a statement out, hand a value in, merge two
segments, make a shape smaller, take a trait away. It is delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating
Failure-Inducing Input", 2002).
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gradcheck_plus.campaign import dataflow, specs
from gradcheck_plus.campaign.edits import EDITS
from gradcheck_plus.campaign.edits.plans import told_less
from gradcheck_plus.campaign.inflight import Inflight
from gradcheck_plus.campaign.judging import Verdict
from gradcheck_plus.campaign.plan import Key
from gradcheck_plus.case import Case
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.traits import TRAITS, traits


@dataclass
class Shrinker:
    """Makes one failing case simpler, step by step.

    Attributes:
        case: the simplest case so far that shows the fault.
        mismatch: how it shows.
        judge: judges a case.
        inflight: told before each candidate, so that one that hangs can be left out.
        skip: the numbers of candidates that are not run.
        hold: a trait that the case must keep; empty for none.
        deadline: no candidate is begun after this moment of `time.monotonic`; the best so far stands.
        keys: the keys of everything that differs in the simplest case.
        tried: how many candidates were run.
    """

    case: Case
    mismatch: Mismatch
    judge: Callable[[Case], Verdict]
    inflight: Inflight
    skip: frozenset[int] = frozenset()
    deadline: float = float("inf")
    hold: str = ""
    keys: set[Key] = field(default_factory=set)
    tried: int = 0
    remembered: set[Case] = field(default_factory=set)

    def run(self) -> None:
        """Shrink until nothing makes the case simpler; with a trait to hold, first while holding it, then without."""
        self.keys.add(self.mismatch.key)
        if self.hold:
            self._run()
            self.hold = ""
            self.remembered.clear()
        self._run()

    def _run(self) -> None:
        while self._smaller(told_less) or self._smaller(dataflow.smaller) or self._plainer() or self._smaller(specs.simpler):
            pass

    def _smaller(self, candidates: Callable[[Case], Iterator[Case]]) -> bool:
        """Take the first candidate that still fails, again and again; True if there was one."""
        improved = False
        while any(self._improves(candidate) for candidate in candidates(self.case)):
            improved = True
        return improved

    def _plainer(self) -> bool:
        """Try to take every trait away; True if one could be."""
        improved = False
        for trait, edit in EDITS:
            if trait in traits(self.case):
                improved = self._improves(edit(self.case), lost=trait) or improved
        return improved

    def _improves(self, candidate: Case, *, lost: str = "") -> bool:
        """Take a candidate if it shows the fault, and has no trait that the case has not: it might fail for another reason."""
        if candidate == self.case or candidate in self.remembered or time.monotonic() > self.deadline:
            return False
        self.remembered.add(candidate)
        self.tried += 1
        self.inflight.write("shrink", 0, self.tried)
        if self.tried in self.skip or _aimed(candidate) - _aimed(self.case):
            return False
        verdict = self.judge(candidate)
        kept = next((m for m in verdict.faults if m.key == self.mismatch.key), None)
        if kept is None or lost in verdict.traits or (self.hold and self.hold not in verdict.traits):
            return False
        self.case, self.mismatch = candidate, kept
        self.keys = {m.key for m in verdict.faults}
        return True


def _aimed(case: Case) -> set[str]:
    return {trait for trait in traits(case) if TRAITS[trait].drawn}
