"""Explaining a shrunk fault: which traits it needs, and whether torch's own subject shows it too."""

from collections.abc import Callable

from gradcheck_plus.campaign.edits import EDITS
from gradcheck_plus.campaign.judging import Verdict, decide
from gradcheck_plus.campaign.plan import Explained
from gradcheck_plus.campaign.shrinking import Shrunk
from gradcheck_plus.case import Case
from gradcheck_plus.expectations import Contract
from gradcheck_plus.subject import Kind
from gradcheck_plus.subjects import SUBJECTS
from gradcheck_plus.traits import TRAITS, traits


def explain(shrunk: Shrunk, judge: Callable[[Case], Verdict], kind: Kind, contract: Contract, device: str) -> Explained:
    """Take away every trait that the fault does not need; then ask torch's own subjects."""
    case, mismatch, keys = shrunk.case, shrunk.mismatch, {shrunk.mismatch.key}
    for trait, edit in EDITS.items():
        if trait not in traits(case):
            continue
        simpler = edit(case)
        verdict = judge(simpler)
        kept = next((m for m in verdict.faults if m.key == mismatch.key), None)
        if kept is not None and trait not in verdict.traits:
            case, mismatch = simpler, kept
            keys |= {m.key for m in verdict.faults}
    trigger = tuple(sorted(filter(telling, traits(case))))
    return Explained(case, mismatch, trigger, _also_fails(case, kind, contract, device), tuple(sorted(keys)))


#: Traits that nearly every program has or that say the same as another one: no part of an explanation.
_COMMON = ("reference-raises", "direct-parameter", "fan-out", "skip-connection")


def telling(trait: str) -> bool:
    """Does a trait say something to a person, rather than to the exactness rule?"""
    return not TRAITS[trait].inexact and trait not in _COMMON


def _also_fails(case: Case, kind: Kind, contract: Contract, device: str) -> tuple[str, ...]:
    """Return torch's own subjects that leave something else behind too, by the contract of the check."""
    own = [s.subject for s in SUBJECTS.values() if s.kind == kind and s.name.startswith("torch-")]
    return tuple(s.name for s in own if decide(case, s, contract, device=device).faults)
