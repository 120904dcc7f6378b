"""Where a shrunk case and plain autograd part first: both are run once more, recorded."""

import msgspec

from gradcheck_plus.campaign.about import not_seen, statement_of
from gradcheck_plus.case import Case
from gradcheck_plus.divergence import Divergence
from gradcheck_plus.errors import said
from gradcheck_plus.execute import execute, reference
from gradcheck_plus.graph.diverging import divergence
from gradcheck_plus.graph.recording import Recording
from gradcheck_plus.graph.running import RunRecording
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.subject import Subject


def first_divergence(case: Case, subject: Subject, mismatch: Mismatch, device: str) -> Divergence:
    """Return the first place at which a subject leaves what plain autograd does, of a case on which it does.

    Where nothing that autograd or the operations do differs, or one of the two raised, this is the statement that the mismatch
    is about.
    """
    try:
        expected, got = (_recorded(case, one, device) for one in (reference(subject.kind), subject))
        found = divergence(expected, got, known=True)
    except Exception as error:  # a fault that was found is not to be lost for want of its place
        other = not_seen(case, mismatch)
        return msgspec.structs.replace(
            other, message=f"not told apart ({type(error).__name__}: {said(error)}); {mismatch.message}"
        )
    if found is None:
        return not_seen(case, mismatch)
    return msgspec.structs.replace(found, source_line=found.source_line or statement_of(case, mismatch.leaf))


def _recorded(case: Case, subject: Subject, device: str) -> Recording:
    recorder = RunRecording(outside=False)
    execute(case, subject, device=device, recorder=recorder)
    return recorder.recording
