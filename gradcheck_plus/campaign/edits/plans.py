"""Edits of what a subject is told to do."""

from collections.abc import Iterator

from gradcheck_plus.campaign.edits.common import Edit, replaced
from gradcheck_plus.case import Case, Plan


def told_less(case: Case) -> Iterator[Case]:
    """Yield the cases that tell the subject less, the boldest steps first."""
    plan = case.plan
    if plan == Plan():
        return
    yield replaced(case, plan=Plan())
    for field in ("saved", "layers", "inner"):
        entries = getattr(plan, field)
        for size in dict.fromkeys((len(entries) // 2, 1)):
            for start in range(0, len(entries) if size else 0, size or 1):
                yield replaced(case, plan=replaced(plan, **{field: entries[:start] + entries[start + size :]}))
    for field in ("pieces", "times"):
        if getattr(plan, field) > 1:
            yield replaced(case, plan=replaced(plan, **{field: getattr(plan, field) - 1}))


def _set(**changes: object) -> Edit:
    return lambda case: replaced(case, plan=replaced(case.plan, **changes))


EDITS: tuple[tuple[str, Edit], ...] = (
    ("saved-result", _set(saved=())),
    ("nested-layers", _set(layers=())),
    ("several-pieces", _set(pieces=1)),
    ("inner-wrap", _set(inner=())),
    ("double-wrap", _set(times=1)),
)
