"""What a check leaves on disk: repros, replays and the JSON report."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from gradcheck_plus.case import Case
from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.replay import Replay
from gradcheck_plus.results import CheckResult, Fault, Report
from gradcheck_plus.subject import Kind


def save(result: CheckResult, kind: Kind, target: str, out: Path) -> None:
    """Write the repro and the replay of every fault into a folder, and note the folder in the result.

    Args:
        result: what the check found.
        kind: the kind of its subject.
        target: the implementation.
        out: the folder; it is made.

    Raises:
        InvalidArgument: the folder cannot be written to.
    """
    for fault in result.faults:
        assert fault.repro is not None and fault.replay is not None
        write(out / fault.repro, fault.program)
        write(out / fault.replay, _replay(fault, result, kind, target))
    result.volatile["out"] = str(out)


def _replay(fault: Fault, result: CheckResult, kind: Kind, target: str) -> str:
    mismatch = Mismatch(fault.kind, fault.role, fault.leaf, fault.expected, fault.got, fault.error, fault.figures)  # type: ignore[arg-type]
    settings: dict[str, Any] = result.settings
    replay = Replay(
        kind=kind,
        target=target,
        contract=result.contract,
        device=settings["device"],
        known=settings["known"],
        fingerprint=fault.fingerprint,
        mismatch=mismatch,
        case=Case.from_json(fault.case),
    )
    return replay.text()


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all, so that workers of a parallel run may write the same one.

    Raises:
        InvalidArgument: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            file.write(text)
        os.replace(file.name, path)
    except OSError as error:
        raise InvalidArgument(f"`path`={str(path)!r} cannot be written: {error.strerror}. Choose another place.") from error


def write_json(report: Report, path: str) -> None:
    """Write the report as JSON to a file, or to standard output if the path is ``-``."""
    text = msgspec.json.format(msgspec.json.encode(report), indent=1).decode() + "\n"
    if path == "-":
        sys.stdout.write(text)
    else:
        write(Path(path), text)
