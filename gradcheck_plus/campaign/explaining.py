"""Explaining a fault: shrink it, say which traits it needs, and whether torch's own subject shows it too."""

import time
from collections.abc import Callable

from gradcheck_plus.campaign.inflight import Inflight
from gradcheck_plus.campaign.judging import Verdict, decide
from gradcheck_plus.campaign.plan import Explained, Failure, Key
from gradcheck_plus.campaign.shrinking import Shrinker
from gradcheck_plus.campaign.telling import telling
from gradcheck_plus.case import Case
from gradcheck_plus.expectations import Contract
from gradcheck_plus.expectations import contract as contract_of
from gradcheck_plus.subject import Kind, Subject
from gradcheck_plus.subjects import SUBJECTS
from gradcheck_plus.traits import traits


def explain(
    failure: Failure,
    key: Key,
    judge: Callable[[Case], Verdict],
    inflight: Inflight,
    *,
    skip: frozenset[int] = frozenset(),
    hold: str = "",
    seconds: float | None = None,
) -> Explained | None:
    """Shrink a failure while a mismatch with this key remains, and name the traits that it needs.

    With a trait to `hold`, the failure is first shrunk as far as it keeps that trait, and then further.

    Returns:
        None if the case does not fail this way any more.
    """
    inflight.write("shrink", 0, 0)
    faults = judge(failure.case).faults
    mismatch = next((m for m in faults if m.key == key), None) or next((m for m in faults if _alike(m.key, key)), None)
    if mismatch is None:
        return None
    deadline = float("inf") if seconds is None else time.monotonic() + seconds
    shrinker = Shrinker(failure.case, mismatch, judge, inflight, skip, deadline, hold)
    shrinker.run()
    trigger = tuple(sorted(filter(telling, traits(shrinker.case))))
    return Explained(shrinker.case, shrinker.mismatch, trigger, tuple(sorted(shrinker.keys)), shrinker.tried)


def _alike(key: Key, other: Key) -> bool:
    """Is it one mismatch that differs each time? What is read from memory that was never written may be the same twice."""
    return key[1:] == other[1:] and {key[0], other[0]} == {"value", "not-repeatable"}


def also_fails(case: Case, kind: Kind, contract: Contract, device: str) -> tuple[str, ...]:
    """Return torch's own subjects that leave something else behind too, by the contract of the check."""
    return tuple(s.name for s in _torch_subjects(kind) if decide(case, s, contract, device=device).faults)


def known_of_torch(case: Case, kind: Kind, torch: str, device: str) -> tuple[tuple[str, str, str, str], ...]:
    """Return (trait, kind, role, source) of every known fault that torch's own subjects show in a case."""
    found = []
    for s in _torch_subjects(kind):
        own = contract_of(s.contract).for_subject(s.name, torch=torch, known=True)
        excused = decide(case, s, own, device=device).excused
        found += [(e.trait, m.kind, m.role, e.source) for m, e in excused if e.effect == "known"]
    return tuple(dict.fromkeys(found))


def _torch_subjects(kind: Kind) -> list[Subject]:
    return [s.subject for s in SUBJECTS.values() if s.kind == kind and s.compared]
