"""Replay files: a fault's case as JSON, with all that is needed to run it again."""

from pathlib import Path

import msgspec

from gradcheck_plus.case import Case
from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.results import SCHEMA
from gradcheck_plus.subject import Kind


class Replay(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One case to run again, and how it failed.

    Attributes:
        schema: the version of this format.
        kind: how the implementation is called.
        target: the implementation.
        contract: what it was held to.
        device: where it ran.
        known: were torch's known faults excused?
        mismatch: how it failed.
        case: the case.
    """

    schema: int = SCHEMA
    kind: Kind
    target: str
    contract: str
    device: str
    known: bool
    fingerprint: str
    mismatch: Mismatch
    case: Case

    def text(self) -> str:
        """Return the contents of the file."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1).decode() + "\n"

    @staticmethod
    def read(path: Path) -> "Replay":
        """Return what a file holds.

        Raises:
            InvalidArgument: there is no such file, or it is not one that a check wrote; the message says where it differs.
        """
        try:
            text = path.read_bytes()
        except OSError as error:
            raise InvalidArgument(
                f"`file`={str(path)!r} cannot be read: {error.strerror}. Write the path of a replay file."
            ) from error
        try:
            replay = msgspec.json.decode(text, type=Replay)
        except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
            raise InvalidArgument(
                f"`file`={str(path)!r} is not a replay file: {error}. `gradcheck-plus check` writes them."
            ) from error
        if replay.schema != SCHEMA:
            raise InvalidArgument(f"`schema`={replay.schema} of {str(path)!r} is not {SCHEMA}, which this version reads.")
        return replay
