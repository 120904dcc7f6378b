"""The campaign: blocks in, one `CheckResult` out.

Searching and explaining are apart. Blocks only generate; each says which of its cases fail and how. Then, in the order in which
a serial run meets them, failures that no fault found so far explains are shrunk and explained, each a new distinct fault.
"""

import time
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import msgspec

from gradcheck_plus.campaign.distinct import MOST_FAULTS, Distinct
from gradcheck_plus.campaign.plan import Block, Described, Outcome, Runner, Search
from gradcheck_plus.results import CheckResult, Excused, Fault, Pairs, Verdict
from gradcheck_plus.settings import PROFILES
from gradcheck_plus.subjects import MODULE_SUBJECTS
from gradcheck_plus.traits import compatible
from gradcheck_plus.traits.impossible import impossible

Progress = Callable[[Outcome, Sequence[Fault]], None]


class Campaign:
    """One check while it runs.

    Args:
        search: what is searched.
        runner: where it is run.
        progress: told after every block and every fault.
        order: the order in which blocks are run; their results are joined in their own order.
    """

    def __init__(
        self, search: Search, runner: Runner, progress: Progress = lambda _outcome, _faults: None, order: Sequence[int] = ()
    ) -> None:
        self.search, self.settings, self.runner, self.progress = search, search.settings, runner, progress
        self.described: Described = runner.describe()
        self.started = time.monotonic()
        self.outcome = Outcome()
        self.distinct = Distinct(search, runner, self._left, lambda: self.progress(self.outcome, self.faults))
        self.interrupted = False
        self.ready = {number: runner.block(self._block(number)) for number in order}

    def run(self) -> CheckResult:
        """Run until the budget is used up, or until the first fault that is the subject's own."""
        try:
            for number in range(len(self.settings.blocks)):
                outcome = self.ready.pop(number, None) or self.runner.block(self._block(number))
                self.outcome.join(outcome)
                self.progress(self.outcome, self.faults)
                self.interrupted = outcome.interrupted
                self.distinct.explain(outcome.failures, shrink=not self.interrupted)
                if self.distinct.enough or outcome.unfinished or self.interrupted:
                    break
            if self.settings.keep_going and not self.interrupted:
                self.distinct.look_behind(self.outcome)
        except KeyboardInterrupt:  # what was found is kept, as it was met
            self.interrupted = True
            self.distinct.explain(self.outcome.failures, shrink=False)
        return self.result()

    @property
    def faults(self) -> list[Fault]:
        """The distinct faults so far."""
        return self.distinct.faults

    def _block(self, number: int) -> Block:
        return Block(number, self.settings.seed, self.settings.blocks[number], seconds=self._left())

    def _left(self) -> float | None:
        """Return the seconds that are left of the budget, None if there is none."""
        budget = self.settings.time_budget
        return None if budget is None else max(budget - (time.monotonic() - self.started), 0.0)

    # result ---------------------------------------------------------------------------------------------------------

    def result(self) -> CheckResult:
        """Return what is known by now."""
        verdict, reason = self._verdict()
        seconds = time.monotonic() - self.started
        return CheckResult(
            name=self.described.name,
            kind="module" if self.search.module else self.search.kind,
            target=self.search.module or self.described.target,
            contract=self.described.contract,
            seed=self.settings.seed,
            settings=msgspec.to_builtins(self.settings),
            verdict=verdict,
            reason=reason,
            cases=self.outcome.counts,
            costs=self.outcome.costs,
            traits=dict(sorted(self.outcome.traits.items())),
            pairs=self._pairs,
            faults=sorted(self.faults, key=lambda fault: bool(fault.also_fails)),
            known=[*self._excused("known"), *self.distinct.known_of_torch(self.outcome.failures)],
            limits=self._excused("limit", "refuses"),
            volatile={"seconds": round(seconds, 3), "cases_per_second": round(self.outcome.counts.run / seconds, 1)},
        )

    @property
    def _pairs(self) -> Pairs:
        """How many pairs of the traits that are aimed at met in a judged case, of those that can."""
        possible = [p for p in combinations(self.described.aimed, 2) if compatible(*p) and not impossible(*p)]
        met = {frozenset(p) for p in self.outcome.pairs}
        return Pairs(sum(frozenset(p) in met for p in possible), len(possible))

    def _excused(self, *effects: str) -> list[Excused]:
        return [Excused(t, kind, role, n, source) for (t, e, kind, role, source), n in self.outcome.excused if e in effects]

    @property
    def _advice(self) -> str:
        named = [s for s in MODULE_SUBJECTS if s != self.described.name]
        wanted = self.search.module and self.outcome.counts.refused
        return f" (leave it out: --subject {' --subject '.join(named)})" if wanted else ""

    def _verdict(self) -> tuple[Verdict, str]:
        counts, s = self.outcome.counts, self.settings
        if self.faults:
            ended = "" if s.keep_going else "; --keep-going looks for others"
            ended = f", interrupted after {counts.run} cases" if self.interrupted else ended
            if len(self.faults) == MOST_FAULTS:
                ended = f", as many as one check lists; it ended after {counts.run} cases"
            return "fault", f"{len(self.faults)} distinct {'fault' if len(self.faults) == 1 else 'faults'}{ended}"
        if counts.invalid:
            return "inconclusive", f"plain autograd itself raised in {counts.invalid} cases: {'; '.join(self.outcome.reasons)}"
        if not counts.judged:
            return "inconclusive", f"no case was judged: {_unjudged(counts)}{self._advice}"
        unseen = [t for t in s.traits or () if not self.outcome.traits.get(t)]
        if unseen:
            return "inconclusive", f"no judged case has {', '.join(unseen)}"
        if self.interrupted:
            return "inconclusive", f"interrupted after {counts.run} cases"
        if reason := self._unmet():
            return "inconclusive", f"{reason}, as --profile {s.profile} wants"
        return "match", f"{counts.judged} cases judged"

    def _unmet(self) -> str:
        """Return what the profile wants and the judged cases do not have; empty if nothing."""
        wanted, pairs = PROFILES[self.settings.profile], self._pairs
        if self.search.module:
            return ""
        unseen = [t for t in self.described.aimed if not self.outcome.traits.get(t)]
        if wanted.every_trait and unseen:
            more = f" and {len(unseen) - 5} others" if len(unseen) > 5 else ""
            return f"not every trait was judged: {', '.join(unseen[:5])}{more} was not"
        few = pairs.judged < wanted.pairs * pairs.possible
        return f"{pairs.judged} of {pairs.possible} pairs of traits were judged, not {wanted.pairs:.0%}" if few else ""


def _unjudged(counts: Any) -> str:
    parts = {"refused by the subject": counts.refused, "without a gradient that is not zero": counts.vacuous}
    said = ", ".join(f"{n} {what}" for what, n in parts.items() if n)
    return f"of {counts.run}, {said}" if said else f"{counts.run} were run"
