"""The command line. Parsing and ``--help`` need neither torch nor Hypothesis; checks run in a worker process."""

import contextlib
import io
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence

from gradcheck_plus.cli.parser import parser
from gradcheck_plus.results import INCONCLUSIVE, TOOL_FAILED, WRONG_CALL


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Returns:
        0 nothing wrong; 1 a fault; 2 the call is wrong, and the message says what to write instead; 3 inconclusive; 4 the tool
        itself failed.
    """
    options = parser().parse_args(arguments)
    from gradcheck_plus.campaign.remote import ToolFailed
    from gradcheck_plus.cli.commands import COMMANDS
    from gradcheck_plus.errors import InvalidArgument

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a subject says may be more than the encoding can
            stream.reconfigure(errors="backslashreplace")
    try:
        with _termination_interrupts():
            return COMMANDS[options.command](options)
    except InvalidArgument as error:
        return _complain(WRONG_CALL, f"error: {error}")
    except ToolFailed as error:
        return _complain(TOOL_FAILED, f"the tool itself failed; please report this:\n{error}")
    except KeyboardInterrupt:
        return _complain(INCONCLUSIVE, "interrupted")
    except Exception:  # or Python would end with 1, which says that there is a fault
        return _complain(TOOL_FAILED, f"the tool itself failed; please report this:\n{traceback.format_exc()}")


def _complain(code: int, text: str) -> int:
    print(f"gradcheck-plus: {text}", file=sys.stderr)  # noqa: T201 - this is the command line
    return code


@contextlib.contextmanager
def _termination_interrupts() -> Iterator[None]:
    """Take SIGTERM, as a CI job that is cancelled sends it, for an interrupt: the worker is ended, what was found is kept."""
    if threading.current_thread() is not threading.main_thread():  # only that one may
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
