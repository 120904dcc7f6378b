"""``gradcheck-plus replay``."""

import argparse
from pathlib import Path

import msgspec

from gradcheck_plus.campaign.plan import Search
from gradcheck_plus.campaign.remote import RemoteRunner
from gradcheck_plus.cli.check import NO_LIMIT
from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.replay import Replay
from gradcheck_plus.report.files import write_out
from gradcheck_plus.results import FAULT, INCONCLUSIVE, MATCH, case_lines
from gradcheck_plus.settings import Settings


def replay(options: argparse.Namespace) -> int:
    """Run cases again and say of each whether it still fails; return the exit code."""
    replays = [(file, Replay.read(Path(file))) for file in options.files]
    codes = [_replayed(file, one, options) for file, one in replays]
    return max(codes, key=(MATCH, INCONCLUSIVE, FAULT).index)


def _replayed(file: str, one: Replay, options: argparse.Namespace) -> int:
    target = options.target or one.target
    if not target:
        raise InvalidArgument(f"`file`={file!r} was written for an object without an import path. Name one with --target.")
    settings = Settings(device=one.device, known=one.known, case_timeout=min(options.case_timeout, NO_LIMIT))
    call = one.case.call
    reference, inputs = (call.reference, call.inputs) if call else ("", "")
    search = Search(kind=one.kind, settings=settings, contract=one.contract, target=target, reference=reference, inputs=inputs)
    with RemoteRunner(search) as runner:
        judged = runner.judge(one.case)
    said, code = _outcome(one, judged.name, [msgspec.to_builtins(m) for m in judged.faults])
    lines = [f"{said}: {file} [{one.fingerprint}] {target}", *(f"  {m.kind} of {m.role}: {m.message}" for m in judged.faults)]
    lines += [f"  plain autograd itself raises: {judged.reason}"] if judged.name == "invalid" else []
    lines += [f"  | {line}" for line in case_lines(one.case, one.kind)] if options.verbose else []
    write_out("\n".join(lines) + "\n")
    return code


def _outcome(one: Replay, name: str, faults: list[dict[str, str]]) -> tuple[str, int]:
    if name == "invalid":
        return "INVALID", INCONCLUSIVE
    if not faults:
        return "PASSES", MATCH
    same = any(m["kind"] == one.mismatch.kind and m["role"] == one.mismatch.role for m in faults)
    return ("FAILS" if same else "FAILS DIFFERENTLY"), FAULT
