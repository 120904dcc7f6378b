"""The pure judgement of evidence: two records in, mismatches out. Runs nothing, does no I/O.

Structure first, then bits, then the error budget of `gradcheck_plus.tolerance`. Where the two records are not enough the
answer is the `Need` for more, and the caller gathers it.
"""

import enum
import math
from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from gradcheck_plus import tolerance
from gradcheck_plus.mismatch import Figures, Mismatch, Role, Rule
from gradcheck_plus.record import Raised, Record


class Need(enum.Enum):
    """What the oracle must see before it can say more."""

    REPETITION = "the reference and the subject once more, with memory handed out as it is"
    TRUTH = "the reference in float64, and with its primals one ULP up and down"


@dataclass
class Evidence:
    """What the oracle is given.

    Attributes:
        reference: what plain autograd left behind.
        subject: what the implementation under test left behind.
        exact: a correct subject must give equal bits in this case.
        unit: the unit roundoff of the coarsest dtype in play.
        again: the repetition of both, once asked for.
        truth: the float64 record, if it was asked for and there is one.
        nudged: the two nudged references, once asked for.
    """

    reference: Record
    subject: Record
    exact: bool
    unit: float
    again: tuple[Record, Record] | None = None
    truth: Record | None = None
    nudged: tuple[Record, Record] | None = None


@dataclass
class Judgement:
    """What differs, and by which rule the last word was said."""

    mismatches: list[Mismatch]
    rule: Rule = "bitwise"


def judge(evidence: Evidence) -> Judgement | Need:
    """Compare everything the subject left behind with everything the reference left behind.

    Returns:
        The mismatches, one for every differing thing; or what else must be seen first.
    """
    reference, subject = evidence.reference, evidence.subject
    if reference.raised or subject.raised:
        return Judgement(_exceptions(reference, subject))
    if structure := _structures(reference, subject):
        return Judgement(structure)
    found, suspects = list(_facts(reference, subject)), []
    for role, leaf in {**reference.tensors, **subject.tensors}:
        a, b = reference.tensors.get((role, leaf)), subject.tensors.get((role, leaf))
        found += _tensor_structure(role, leaf, a, b)
        if a is not None and b is not None and _comparable(a, b) and not tolerance.equal(a, b):
            suspects.append((role, leaf, a, b))
    if not suspects:
        return Judgement(found)
    return _numbers(evidence, found, suspects)


#: Whose numbers are looked at twice before they are called wrong: they may be other numbers every time.
_REPEATED = ("output", "primal", "parameter")

_Suspect = tuple[Role, str, Tensor, Tensor]


def _numbers(evidence: Evidence, found: list[Mismatch], suspects: list[_Suspect]) -> Judgement | Need:
    if evidence.again is None and any(role in _REPEATED for role, *_ in suspects):
        return Need.REPETITION
    varies = evidence.reference.varies  # and may have repeated itself by luck
    bits, budget = [], []
    for suspect in suspects:
        role, leaf, a, b = suspect
        again = evidence.again if role in _REPEATED else None
        steady = not varies and (again is None or _repeats(again[0], role, leaf, a))
        if again and steady and not _repeats(again[1], role, leaf, b):
            found.append(Mismatch("not-repeatable", role, leaf, described(a), "other numbers each time"))
        elif (evidence.exact and steady) or role in ("rng", "input") or not a.is_floating_point():
            bits.append(suspect)
        else:
            budget.append(suspect)
    if budget and evidence.nudged is None:
        return Need.TRUTH
    found += [_differing(suspect, "bitwise", 0.0) for suspect in bits]
    found += [m for suspect in budget if (m := _over_budget(evidence, suspect))]
    return Judgement(found, _budget_rule(evidence) if budget else "bitwise")


def _budget_rule(evidence: Evidence) -> Rule:
    return "budget" if evidence.truth else "nudged"


def _exceptions(reference: Record, subject: Record) -> list[Mismatch]:
    if reference.raised and subject.raised:
        return []
    if subject.raised and (structure := _structures(reference, subject, both=True)):
        return structure  # which is why it raised
    if subject.raised:
        r = subject.raised
        return [Mismatch("raises", "call", r.phase, "no exception", _said(r), error=r.type)]
    assert reference.raised is not None
    return [Mismatch("not-raised", "call", reference.raised.phase, _said(reference.raised), "no exception")]


def _said(raised: Raised) -> str:
    first = raised.message.strip().splitlines()
    return f"{raised.type}: {first[0][:160]}" if first else raised.type


def _structures(reference: Record, subject: Record, *, both: bool = False) -> list[Mismatch]:
    """Return the differing structures; with `both` only those that each of the two has."""
    found = [m for m in _facts(reference, subject) if m.kind == "structure"]
    return [m for m in found if not both or "nothing" not in (m.expected, m.got)]


def _facts(reference: Record, subject: Record) -> Iterator[Mismatch]:
    for key in {**reference.facts, **subject.facts}:
        role, leaf, aspect = key
        a, b = reference.facts.get(key, "nothing"), subject.facts.get(key, "nothing")
        if a != b:
            yield Mismatch(aspect, role, leaf, str(a), str(b))


def _tensor_structure(role: Role, leaf: str, a: Tensor | None, b: Tensor | None) -> Iterator[Mismatch]:
    if (a is None) != (b is None):
        yield Mismatch("presence", role, leaf, described(a), described(b))
    elif a is not None and b is not None:
        if a.dtype != b.dtype:
            yield Mismatch("dtype", role, leaf, str(a.dtype), str(b.dtype))
        if a.shape != b.shape:
            yield Mismatch("shape", role, leaf, str(tuple(a.shape)), str(tuple(b.shape)))
        if a.device != b.device:
            yield Mismatch("device", role, leaf, str(a.device), str(b.device))


def _comparable(a: Tensor, b: Tensor) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.device == b.device


def _repeats(again: Record, role: Role, leaf: str, first: Tensor) -> bool:
    second = again.tensors.get((role, leaf))
    return second is not None and _comparable(first, second) and tolerance.equal(first, second)


def _over_budget(evidence: Evidence, suspect: _Suspect) -> Mismatch | None:
    """Return the mismatch of a tensor whose error is more than its budget."""
    role, leaf, a, b = suspect
    truth = evidence.truth.tensors.get((role, leaf)) if evidence.truth else None
    target = a if truth is None or truth.shape != a.shape else truth
    assert evidence.nudged is not None
    variants = [r.tensors.get((role, leaf)) for r in (*evidence.nudged, *(evidence.again or ())[:1])]
    spread = max((tolerance.gap(v, a) for v in variants if v is not None and v.shape == a.shape), default=0.0)
    error = max(tolerance.gap(a, target), spread)
    scale = max((tolerance.largest(g) for g in (evidence.truth or evidence.reference).gradients()), default=0.0)
    unit = max(evidence.unit, tolerance.UNIT[str(a.dtype).removeprefix("torch.")])
    limit = tolerance.allowed(error, unit, tolerance.largest(target), scale)
    if tolerance.gap(b, target) <= limit:
        return None
    return _differing(suspect, _budget_rule(evidence), limit)


def _differing(suspect: _Suspect, rule: Rule, limit: float) -> Mismatch:
    role, leaf, a, b = suspect
    if role == "rng":
        return Mismatch("state", role, leaf, "the reference's state", "another state")
    difference, magnitude = tolerance.gap(a, b), tolerance.largest(a)
    figures = Figures(
        max_abs=_finite(difference),
        max_rel=_finite(difference / magnitude if magnitude else math.inf),
        max_ulp=_finite(tolerance.ulps(difference, magnitude, a.dtype)),
        allowed=limit,
        rule=rule,
    )
    return Mismatch("value", role, leaf, described(a), described(b), figures=figures)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def described(tensor: Tensor | None) -> str:
    """Return a tensor in a few words: its values where they are few.

    Example:
        >>> import torch
        >>> described(torch.tensor([1.0, 0.25])), described(None)
        ('tensor([1, 0.25])', 'None')
    """
    if tensor is None:
        return "None"
    flat = tensor.detach().flatten()
    if flat.numel() <= 6:
        return f"tensor([{', '.join(f'{v:.6g}' for v in flat.tolist())}])"
    some = ", ".join(f"{v:.6g}" for v in flat[:5].tolist())
    return f"tensor{tuple(tensor.shape)} [{some}, ...]"
