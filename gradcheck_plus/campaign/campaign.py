"""The campaign: blocks in, one `CheckResult` out.

Searching and explaining are apart. Blocks only generate; each says which of its cases fail and how. Then, in the order in which
a serial run meets them, failures that no fault found so far explains are shrunk and explained, each a new distinct fault.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import msgspec

from gradcheck_plus.campaign.plan import Block, Described, Explained, Failure, Inspected, Key, Outcome, Runner, Search
from gradcheck_plus.case import Case
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.repro import repro
from gradcheck_plus.results import CheckResult, Excused, Fault, Pairs, Verdict
from gradcheck_plus.settings import BLOCK
from gradcheck_plus.subjects import SUBJECTS, primary
from gradcheck_plus.traits import compatible, traits

#: Distinct faults that one check reports at most: more are one broken subject, not many faults.
MOST_FAULTS = 40
_GRADIENT = ("primal", "parameter")

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
        self.faults: list[Fault] = []
        self.explained: list[Explained] = []
        self.done: set[tuple[int, int, Key]] = set()
        self.interrupted = False
        self.ready = {number: runner.block(self._block(number)) for number in order}

    def run(self) -> CheckResult:
        """Run until the budget is used up, or until the first fault that is the subject's own."""
        try:
            for number in range(len(self.settings.blocks)):
                outcome = self.ready.pop(number, None) or self.runner.block(self._block(number))
                self.outcome.join(outcome)
                self.progress(self.outcome, self.faults)
                self._explain(outcome.failures)
                if self._enough or outcome.unfinished:
                    break
        except KeyboardInterrupt:
            self.interrupted = True
        return self.result()

    def _block(self, number: int) -> Block:
        return Block(number, self.settings.seed, self.settings.blocks[number], seconds=self._left())

    def _left(self) -> float | None:
        """Return the seconds that are left of the budget, None if there is none."""
        budget = self.settings.time_budget
        return None if budget is None else max(budget - (time.monotonic() - self.started), 0.0)

    # faults ---------------------------------------------------------------------------------------------------------

    @property
    def _enough(self) -> bool:
        """Is there a fault that torch's own subject does not show, and no wish for more?"""
        if len(self.faults) >= MOST_FAULTS:
            return True
        torch_own = primary(self.search.kind).name
        given = self.search.module or self.described.name in SUBJECTS  # then there is nobody else to blame
        own = [f for f in self.faults if given or torch_own not in f.also_fails]
        return bool(own) and not self.settings.keep_going

    def _explain(self, failures: Sequence[Failure]) -> None:
        """Make a fault of everything that none explains yet, the worst first."""
        while not self._enough and (worst := self._unexplained(failures)) is not None:
            failure, mismatch = worst
            explained = None
            if mismatch.kind not in ("hang", "crash"):
                explained = self.runner.explain(failure, mismatch.key, self._left())
            explained = explained or _as_met(failure, mismatch)
            self.explained.append(explained)
            self.done.add((failure.block, failure.number, mismatch.key))
            self._take(self._fault(failure, explained), explained)
            self.progress(self.outcome, self.faults)

    def _take(self, fault: Fault, explained: Explained) -> None:
        """Add a fault, in the place of those that turn out to be the same with more around it."""
        if fault.fingerprint in {f.fingerprint for f in self.faults}:
            return
        for old in list(self.faults):
            key, had = (old.kind, old.role, old.error), traits(Case.from_json(old.case))
            if explained.trigger is not None and old.trigger is not None and accounts_for(explained, key, had):
                self.faults.remove(old)
                first = min(old.cases_to_find, fault.cases_to_find)
                fault = msgspec.structs.replace(fault, cases_to_find=first)
        self.faults.append(fault)

    def _unexplained(self, failures: Sequence[Failure]) -> tuple[Failure, Mismatch] | None:
        """Return the worst mismatch that no fault found so far accounts for, and the first case that shows it."""
        found = [
            (m.severity, failure.number, failure, m)
            for failure in failures
            for m in failure.mismatches
            if (failure.block, failure.number, m.key) not in self.done
            and not any(accounts_for(e, m.key, failure.traits) for e in self.explained)
        ]
        return min(found, key=lambda entry: entry[:2])[2:] if found else None

    def _fault(self, failure: Failure, explained: Explained) -> Fault:
        m, case = explained.mismatch, explained.case
        fingerprint = fingerprint_of(self.described.name, m.kind, m.role, explained.trigger or ())
        inspected = self.runner.inspect(case)
        return Fault(
            fingerprint=fingerprint,
            kind=m.kind,
            role=m.role,
            leaf=m.leaf,
            subject=self.described.name,
            error=m.error,
            message=m.message,
            expected=m.expected,
            got=m.got,
            figures=m.figures,
            cases_to_find=failure.block * BLOCK + failure.number,
            statements=case.size,
            trigger=explained.trigger,
            also_fails=inspected.also_fails,
            first_divergence=None,
            repro=f"repro_{fingerprint}.py",
            replay=f"case_{fingerprint}.json",
            program=self._program(case, m, explained, inspected),
            case=case.to_json(),
        )

    def _program(self, case: Case, mismatch: Mismatch, explained: Explained, inspected: Inspected) -> str:
        outputs = {(segment, path): (shape, dtype) for segment, path, shape, dtype in inspected.outputs}
        when = f": {', '.join(explained.trigger)}" if explained.trigger else ""
        title = f"{self.described.name} leaves something else behind than plain autograd{when}."
        target, device = self.described.target, self.settings.device
        return repro(case, mismatch, self.search.kind, outputs, target=target, title=title, device=device)

    # result ---------------------------------------------------------------------------------------------------------

    def result(self) -> CheckResult:
        """Return what is known by now."""
        verdict, reason = self._verdict()
        seconds = time.monotonic() - self.started
        aimed = self.described.aimed
        pairs = [p for p in self.outcome.pairs if set(aimed).issuperset(p)]
        possible = sum(compatible(*p) for p in combinations(aimed, 2))
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
            traits=dict(sorted(self.outcome.traits.items())),
            pairs=Pairs(len(pairs), possible),
            faults=self.faults,
            known=self._excused("known"),
            limits=self._excused("limit", "refuses"),
            volatile={"seconds": round(seconds, 3), "cases_per_second": round(self.outcome.counts.run / seconds, 1)},
        )

    def _excused(self, *effects: str) -> list[Excused]:
        return [Excused(t, kind, role, n, source) for (t, e, kind, role, source), n in self.outcome.excused if e in effects]

    def _verdict(self) -> tuple[Verdict, str]:
        counts, s = self.outcome.counts, self.settings
        if self.faults:
            return "fault", f"{len(self.faults)} distinct {'fault' if len(self.faults) == 1 else 'faults'}"
        if counts.invalid:
            return "inconclusive", f"plain autograd itself raised in {counts.invalid} cases: {'; '.join(self.outcome.reasons)}"
        if not counts.judged:
            return "inconclusive", f"no case was judged: {_unjudged(counts)}"
        unseen = [t for t in s.traits or () if not self.outcome.traits.get(t)]
        if unseen:
            return "inconclusive", f"no judged case has {', '.join(unseen)}"
        if self.interrupted:
            return "inconclusive", f"interrupted after {counts.run} cases"
        return "match", f"{counts.judged} cases judged"


def _unjudged(counts: Any) -> str:
    parts = {"refused by the subject": counts.refused, "without a gradient that is not zero": counts.vacuous}
    said = ", ".join(f"{n} {what}" for what, n in parts.items() if n)
    return f"of {counts.run}, {said}" if said else f"{counts.run} were run"


def _as_met(failure: Failure, mismatch: Mismatch) -> Explained:
    """Return a failure as it was met, where it cannot be shown again."""
    return Explained(failure.case, mismatch, None, (mismatch.key,))


def accounts_for(explained: Explained, key: Key, found: frozenset[str]) -> bool:
    """Is a mismatch with this key, in a case with these traits, the fault that was explained?

    It is, if the case has all that triggers the fault, and the mismatch is of the same kind and of a role that goes with it: a
    wrong gradient may reach primals in one case and parameters in another.
    """
    if not found.issuperset(explained.trigger or ()):
        return False
    return any(
        key[0] == other[0] and key[2] == other[2] and (key[1] == other[1] or {key[1], other[1]} <= set(_GRADIENT))
        for other in explained.keys
    )


def fingerprint_of(name: str, kind: str, role: str, trigger: Sequence[str], operation: str = "") -> str:
    """Return twelve hexadecimal digits that name a fault: subject, kind, role, trigger and first divergent operation."""
    return hashlib.sha256("\n".join([name, kind, role, *trigger, operation]).encode()).hexdigest()[:12]
