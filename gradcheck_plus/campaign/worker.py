"""The worker process: runs what a campaign asks for, so that a subject that hangs or crashes takes only this process along.

Started as ``python -m gradcheck_plus.campaign.worker``; speaks `gradcheck_plus.campaign.messages` on standard input and on what
was standard output when it started. Whatever a subject prints goes to standard error.
"""

import ctypes
import gc
import os
import signal
import sys
import traceback
from typing import IO

import msgspec

from gradcheck_plus.campaign.function_runner import FunctionRunner, runner_for
from gradcheck_plus.campaign.messages import Explain, FindCase, Inspect, Judge, Judged, Reply, Request, RunBlock, Setup
from gradcheck_plus.campaign.runner import LocalRunner, single_thread
from gradcheck_plus.errors import InvalidArgument

#: New objects between two looks of the collector. Cases leave much that lives on for a while: with the default of 700, a sixth
#: of a campaign's time went into looking through it.
_YOUNG = 5000
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of linux/prctl.h


def main() -> None:
    """Answer requests until standard input ends."""
    _end_with_parent()
    gc.freeze()  # what imports made lives as long as the process, and need not be looked at again and again
    gc.set_threshold(_YOUNG)
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        serve(sys.stdin.buffer, answers)


def _end_with_parent() -> None:
    """Have Linux kill this process when its parent is killed, which could not tell it any more; a subject may hang here."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, int(signal.SIGKILL))


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests, one JSON line each."""
    runner: LocalRunner | FunctionRunner | None = None
    for line in requests:
        request = msgspec.json.decode(line, type=Request)
        try:
            if isinstance(request, Setup):
                runner = runner_for(request.search, inflight=request.inflight, probe=request.probe)
                reply = Reply(described=runner.describe())
            else:
                assert runner is not None
                reply = answer(runner, request)
            said = msgspec.json.encode(reply)
        except InvalidArgument as error:
            said = msgspec.json.encode(Reply(wrong_call=_clean(str(error))))
        except Exception:
            said = msgspec.json.encode(Reply(failed=_clean(traceback.format_exc())))
        answers.write(said + b"\n")
        answers.flush()


def _clean(text: str) -> str:
    """Return a text that can be encoded, with escapes for what cannot, such as a name of a file that is no text."""
    return text.encode(errors="backslashreplace").decode()


def answer(runner: LocalRunner | FunctionRunner, request: RunBlock | FindCase | Explain | Inspect | Judge) -> Reply:
    """Return the reply to a request."""
    match request:
        case RunBlock(block):
            return Reply(outcome=runner.block(block))
        case FindCase(block, number):
            return Reply(case=runner.case_of(block, number))
        case Explain(failure, key, seconds, hold, skip):
            return Reply(explained=runner.explain(failure, key, seconds, hold=hold, skip=skip))
        case Inspect(case, mismatch):
            return Reply(inspected=runner.inspect(case, mismatch))
        case Judge(case):
            runner.inflight.write("judge", 0, 0)
            with single_thread():
                verdict = runner.decide(case)
            return Reply(judged=Judged(verdict.name, verdict.faults, tuple(m for m, _ in verdict.excused), verdict.reason))


if __name__ == "__main__":
    main()
