"""What a check leaves on disk: repros, replays and the JSON report."""

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from gradcheck_plus.case import Case
from gradcheck_plus.errors import InvalidArgument, check_encodable
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.replay import Replay
from gradcheck_plus.results import CheckResult, Fault, Report
from gradcheck_plus.results.selftest import SelfTest
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


def check_places(*, json: str | None, out: str | None) -> None:
    """Do nothing if a report and a folder can be written; so that it is not after an hour that they cannot.

    Args:
        json: the path of the report; None or ``-`` for no file.
        out: the path of the folder for repros and replays; None for no folder.

    Raises:
        InvalidArgument: a place cannot be written to.
    """
    if json and json != "-":
        check_file("json", json)
    if out:
        check_encodable("out", out)
        _check_folder("out", out, Path(out).resolve())


def check_file(option: str, given: str) -> None:
    """Do nothing if a file can be written.

    Raises:
        InvalidArgument: it cannot; the message names the option.
    """
    path = Path(given)
    if path.is_dir():
        raise InvalidArgument(f"`{option}`={given!r} is a folder. Write the path of a file.")
    if not _special(path):
        _check_folder(option, given, path.resolve().parent)


def _check_folder(option: str, given: str, folder: Path) -> None:
    """Do nothing if files can be written into a folder, or into a new one of this path."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not there.is_dir():
        raise InvalidArgument(f"`{option}`={given!r} cannot be written: {str(there)!r} is no folder. Choose another place.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InvalidArgument(f"`{option}`={given!r} cannot be written: {str(there)!r} is read-only. Choose another place.")


def _special(path: Path) -> bool:
    """Is this a device or a pipe, such as /dev/null, which must be written to and never be replaced?"""
    return path.exists() and not path.is_file() and not path.is_dir()


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all, so that workers of a parallel run may write the same one.

    What a subject said may hold what no file can, a lone surrogate; it is written as an escape.

    Raises:
        InvalidArgument: the file cannot be written.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        if _special(path):
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8", errors="backslashreplace")
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise InvalidArgument(f"`path`={str(path)!r} cannot be written: {error.strerror}. Choose another place.") from error


def write_json(report: Report | SelfTest, path: str) -> None:
    """Write the report as JSON to a file, or to standard output if the path is ``-``."""
    text = msgspec.json.format(msgspec.json.encode(report), indent=1).decode() + "\n"
    if path == "-":
        write_out(text)
    else:
        write(Path(path), text)


def write_out(text: str) -> None:
    """Write to standard output. Whoever reads it may leave before the end, which changes nothing of what was found."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # or Python would complain about it once more when it ends
