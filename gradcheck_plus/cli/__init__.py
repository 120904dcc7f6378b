"""The command line. Parsing and ``--help`` need neither torch nor Hypothesis; checks run in a worker process."""

import sys
from collections.abc import Sequence

from gradcheck_plus.cli.parser import parser
from gradcheck_plus.results import TOOL_FAILED, WRONG_CALL


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

    try:
        return COMMANDS[options.command](options)
    except InvalidArgument as error:
        print(f"gradcheck-plus: error: {error}", file=sys.stderr)  # noqa: T201 - this is the command line
        return WRONG_CALL
    except ToolFailed as error:
        print(f"gradcheck-plus: the tool itself failed; please report this:\n{error}", file=sys.stderr)  # noqa: T201
        return TOOL_FAILED
    except BrokenPipeError:  # what reads the output has closed it
        sys.stderr.close()
        return 0
