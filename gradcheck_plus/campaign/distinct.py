"""The distinct faults of a check: each failing case is the doing of a known one, or the next one is explained."""

import functools
import hashlib
from collections.abc import Callable, Sequence

import msgspec

from gradcheck_plus.campaign.plan import Described, Explained, Failure, Inspected, Key, Outcome, Runner, Search
from gradcheck_plus.campaign.telling import telling
from gradcheck_plus.case import Case
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.operations import CATALOGUE
from gradcheck_plus.repro import repro
from gradcheck_plus.repro.replayed import replayed
from gradcheck_plus.results import Excused, Fault
from gradcheck_plus.settings import BLOCK
from gradcheck_plus.subjects import SUBJECTS
from gradcheck_plus.traits import TRAITS, traits

#: Distinct faults that one check reports at most: more are one broken subject, not many faults.
MOST_FAULTS = 40
#: Second looks at most, those for one trait, and how much more often cases with a trait must fail for one.
MOST_LOOKS, LOOKS, LIFT = 60, 2, 1.25
#: Roles whose mismatches may be one fault: a wrong gradient may reach primals in one case and parameters in another.
_GRADIENT = "gradient"
_GROUP = {"primal": _GRADIENT, "parameter": _GRADIENT}


class Distinct:
    """Keeps the distinct faults.

    Args:
        search: what is searched.
        runner: explains failures.
        left: the seconds that are left, None for no limit.
        changed: called after every fault.
    """

    def __init__(self, search: Search, runner: Runner, left: Callable[[], float | None], changed: Callable[[], None]) -> None:
        self.search, self.settings, self.runner, self.left, self.changed = search, search.settings, runner, left, changed
        self.described: Described = runner.describe()
        self.faults: list[Fault] = []
        self.explained: list[Explained] = []
        self.known: list[tuple[Explained, tuple[str, str, str, str]]] = []
        self.done: set[tuple[int, int, Key]] = set()

    @property
    def enough(self) -> bool:
        """Is there a fault that none of torch's own subjects shows, and no wish for more?"""
        if len(self.faults) >= MOST_FAULTS:
            return True
        s = self.search
        given = s.module or s.planted or self.described.name in SUBJECTS  # then there is nobody else to blame
        own = [f for f in self.faults if given or not f.also_fails]
        return bool(own) and not self.settings.keep_going

    def explain(self, failures: Sequence[Failure], *, shrink: bool = True) -> None:
        """Make a fault of everything that none explains yet, the worst first."""
        while not self.enough and (worst := self._unexplained(failures)) is not None:
            failure, mismatch = worst
            explained = None
            if shrink and mismatch.kind not in ("hang", "crash"):
                explained = self.runner.explain(failure, mismatch.key, self.left())
            self._add(failure, mismatch.key, explained or _as_met(failure, mismatch))

    def _add(self, failure: Failure, key: Key, explained: Explained) -> None:
        listed = self._listed(explained)
        self.explained.append(explained)
        self.done.add((failure.block, failure.number, key))
        if listed:
            return
        inspected = self.runner.inspect(explained.case, explained.mismatch)
        known = next((entry for entry in inspected.known if _group(entry[1:])[1] == _group(key)[1]), None)
        if known:
            self.known.append((explained, known))
        else:
            self._take(self._fault(failure, explained, inspected), explained)
        self.changed()

    def look_behind(self, outcome: Outcome) -> None:
        """Look for faults that stand behind another one, whose trigger their cases have too.

        Where cases with some trait fail more often than others, one of them is shrunk as long as it keeps that trait. If the
        trait cannot be taken away then, it is the trigger of a fault of its own; so is what an operation brings, if no wrong
        gradient is known to need it.
        """
        for failure, key, trait in second_looks(outcome, self.explained):
            if len(self.faults) >= MOST_FAULTS or (self.left() or 1.0) <= 0:
                return
            explained = self.runner.explain(failure, key, self.left(), hold=trait)
            if explained is not None and (trait in (explained.trigger or ()) or self._new_need(explained)):
                self._add(failure, key, explained)

    def _new_need(self, explained: Explained) -> bool:
        """Does a wrong gradient need an operation that no other one needs?"""
        group = _group(explained.mismatch.key)
        return group[1] == _GRADIENT and bool(set(explained.trigger or ()) & brought() - known_needs(group, self.explained))

    def _listed(self, explained: Explained) -> bool:
        """Is this a fault that is listed already, with more around it? A wrong gradient may have more than one cause."""
        key, had = explained.mismatch.key, traits(explained.case)
        return _group(key)[1] != _GRADIENT and any(accounts_for(e, key, had) for e in self.explained)

    def _take(self, fault: Fault, explained: Explained) -> None:
        """Add a fault, in the place of those that turn out to be the same with more around it.

        A wrong gradient is listed beside another one that needs less: two causes can stand in one program, and it was shrunk.
        """
        if fault.fingerprint in {f.fingerprint for f in self.faults}:
            return
        for old in [f for f in self.faults if f.role not in _GROUP]:
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

    def known_of_torch(self, failures: Sequence[Failure]) -> list[Excused]:
        """Return the faults that are known of torch's own subjects, who show them too."""
        found = []
        for explained, (trait, _, _, source) in self.known:
            kind, role, _ = explained.mismatch.key
            cases = sum(any(accounts_for(explained, m.key, f.traits) for m in f.mismatches) for f in failures)
            found.append(Excused(trait, kind, role, cases, source))
        return found

    def _fault(self, failure: Failure, explained: Explained, inspected: Inspected) -> Fault:
        m, case = explained.mismatch, explained.case
        fingerprint = fingerprint_of(self.described.name, f"{m.kind} {m.error}".strip(), m.role, explained.trigger or ())
        return Fault(
            fingerprint=fingerprint,
            kind=m.kind,
            role=m.role,
            leaf=m.leaf,
            check=case.call.check if case.call else "",
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
            first_divergence=inspected.divergence,
            repro=f"repro_{fingerprint}.py",
            replay=f"case_{fingerprint}.json",
            program=self._program(case, m, explained, inspected),
            case=case.to_json(),
        )

    def _program(self, case: Case, mismatch: Mismatch, explained: Explained, inspected: Inspected) -> str:
        if case.call:
            return inspected.program or replayed(case, mismatch.message, self.described.target)
        outputs = {(segment, path): (shape, dtype) for segment, path, shape, dtype in inspected.outputs}
        when = f": {', '.join(explained.trigger)}" if explained.trigger else ""
        title = f"{self.described.name} leaves something else behind than plain autograd{when}."
        return repro(
            case,
            mismatch,
            self.search.kind,
            outputs,
            target=self.described.target,
            title=title,
            device=self.settings.device,
            planned=self.described.planned,
        )


def second_looks(outcome: Outcome, explained: Sequence[Explained]) -> list[tuple[Failure, Key, str]]:
    """Return failures to look at again, each with its key and the trait that is suspicious, the most suspicious first.

    Suspicious is a trait with which cases fail more often than others; of wrong gradients, and before all others, every trait
    that an operation brings: one that is mistreated for a reason of its own may stand in a program that fails anyway.
    """
    found: list[tuple[int, float, str, int, Failure, Key]] = []
    for group, failing in _groups(outcome.failures).items():
        if group[0] in ("hang", "crash"):
            continue
        rate = len(failing) / max(outcome.counts.judged, 1)
        gradient = group[1] == _GRADIENT
        known = known_needs(group, explained)
        for trait in sorted({t for failure, _ in failing for t in filter(telling, failure.traits)} - known):
            having = [(failure, key) for failure, key in failing if trait in failure.traits]
            lift = len(having) / max(outcome.traits.get(trait, 0), len(having)) / rate
            operation = gradient and trait in brought()
            if lift > LIFT or operation:
                having.sort(key=lambda pair: (pair[0].case.size, pair[0].block, pair[0].number))
                rank = 0 if operation else 1 if gradient else 2
                found += [(rank, -lift, trait, n, *pair) for n, pair in enumerate(having[:LOOKS])]
    return [(failure, key, trait) for *_, trait, _, failure, key in sorted(found, key=lambda entry: entry[:4])[:MOST_LOOKS]]


def known_needs(group: Key, explained: Sequence[Explained]) -> set[str]:
    """Return the traits that explained faults of a group need."""
    return {trait for e in explained if any(_group(key) == group for key in e.keys) for trait in (e.trigger or ())}


@functools.cache
def brought() -> frozenset[str]:
    """Return the traits that operations bring, and those that need one of these."""
    direct = {trait for operation in CATALOGUE.values() for trait in operation.traits}
    return frozenset(direct | {name for name, trait in TRAITS.items() if direct.intersection(trait.needs)})


def _groups(failures: Sequence[Failure]) -> dict[tuple[str, str, str], list[tuple[Failure, Key]]]:
    """Return the failures that may be one fault: by kind, sort of role, and type of exception."""
    groups: dict[tuple[str, str, str], list[tuple[Failure, Key]]] = {}
    for failure in failures:
        for kind, role, error in dict.fromkeys(m.key for m in failure.mismatches):
            groups.setdefault(_group((kind, role, error)), []).append((failure, (kind, role, error)))
    return groups


def _as_met(failure: Failure, mismatch: Mismatch) -> Explained:
    """Return a failure as it was met, where it cannot be shown again."""
    return Explained(failure.case, mismatch, None, (mismatch.key,))


def accounts_for(explained: Explained, key: Key, found: frozenset[str]) -> bool:
    """Is a mismatch with this key, in a case with these traits, the fault that was explained?

    It is, if the case has all that triggers the fault, and the mismatch is of the same kind and of a role that goes with it.
    """
    if not found.issuperset(explained.trigger or ()):
        return False
    return any(_group(key) == _group(other) for other in explained.keys)


def _group(key: Key) -> Key:
    """Return what mismatches that may be one fault have in common."""
    kind, role, error = key
    return kind, _GROUP.get(role, role), error


def fingerprint_of(name: str, kind: str, role: str, trigger: Sequence[str]) -> str:
    """Return twelve hexadecimal digits that name a fault: subject, kind with exception, role, trigger."""
    return hashlib.sha256("\n".join([name, kind, role, *trigger]).encode()).hexdigest()[:12]
