"""Where a shrunk case and plain autograd part first: both are run once more, recorded."""

import msgspec

from gradcheck_plus.campaign.about import not_seen, statement_of
from gradcheck_plus.case import Case
from gradcheck_plus.divergence import Divergence
from gradcheck_plus.execute import execute, reference
from gradcheck_plus.graph.diverging import divergence, never_ran
from gradcheck_plus.graph.recording import Recording
from gradcheck_plus.graph.running import RunRecording
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.record import Record
from gradcheck_plus.subject import Subject


def first_divergence(case: Case, subject: Subject, mismatch: Mismatch, device: str) -> Divergence:
    """Return the first place at which a subject leaves what plain autograd does, of a case on which it does.

    Where nothing that autograd or the operations do differs, or one of the two raised, this is the statement that the mismatch
    is about.
    """
    (plain, expected), (record, got) = (_recorded(case, one, device) for one in (reference(subject.kind), subject))
    if mismatch.kind in ("raises", "not-raised"):
        return _raising(case, mismatch, plain, record, expected, got)
    found = None if record.raised or plain.raised else divergence(expected, got)
    if found is None:
        return not_seen(case, mismatch)
    return msgspec.structs.replace(found, source_line=found.source_line or statement_of(case, mismatch.leaf))


def _recorded(case: Case, subject: Subject, device: str) -> tuple[Record, Recording]:
    recorder = RunRecording(outside=False)
    record = execute(case, subject, device=device, recorder=recorder)
    return record, recorder.recording


def _raising(case: Case, mismatch: Mismatch, plain: Record, record: Record, expected: Recording, got: Recording) -> Divergence:
    """Return where the one of the two that raises does so: the node that the other one runs and it does not."""
    raised = record.raised or plain.raised
    longer, shorter = (expected, got) if record.raised else (got, expected)
    node = None if raised is None or raised.phase == "forward" else never_ran(longer, shorter)
    line = node.source_line if node else statement_of(case, mismatch.leaf)
    name = node.node if node else mismatch.error or mismatch.leaf
    phase = raised.phase if raised else "backward"
    return Divergence(name, line, phase, "raises", node.source if node else "", mismatch.message)
