"""Reports as plain text, for terminals, logs and test failures."""

import shlex
import textwrap
from collections.abc import Iterator, Sequence

from gradcheck_plus.case import Call, Case, Environment, Plan
from gradcheck_plus.divergence import Divergence
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.results.structs import CheckResult, Costs, Excused, Fault
from gradcheck_plus.source import input_lines, program_source
from gradcheck_plus.subject import STAGES
from gradcheck_plus.traits import traits

_SHOWN = 3
#: The operation that shrinking leaves where it may.
_SIMPLEST = "sin"


def check_text(result: CheckResult, *, verbose: bool = False) -> str:
    """Return the report of one check.

    Args:
        result: what the check found.
        verbose: show the programs, the excused mismatches and how often each trait was judged.
    """
    lines = [headline(result), f"  {_counts(result)}"]
    if result.kind not in (*STAGES, "function") and result.costs.cases:
        lines += [f"  {_costs(result.costs)}"]
    for number, fault in enumerate(result.faults, 1):
        lines += ["", *(f"  {line}" for line in _fault(number, fault, result, verbose=verbose))]
    for name, entries in (("known faults", result.known), ("documented limits", result.limits)):
        if entries:
            lines += ["", f"  excused as {name}:", *(f"    {line}" for line in _excused(entries, verbose=verbose))]
    if verbose:
        lines += ["", *(f"  {line}" for line in _judged(result))]
    return "\n".join(line.rstrip() for line in lines)


def headline(result: CheckResult) -> str:
    """Return one line: what was checked, and what came of it."""
    what = f"{result.kind} {result.name}" + (f" ({result.target})" if result.target else "")
    return f"{result.verdict.upper()}: {what}, contract {result.contract}: {result.reason}"


def _counts(result: CheckResult) -> str:
    c = result.cases
    speed = f"{result.volatile['seconds']:.1f} s, {result.volatile['cases_per_second']:.0f} cases a second"
    said = f"seed {result.seed}: {_cases(c.run)}, {c.judged} judged"
    said += "".join(
        f", {n} {what}" for n, what in ((c.vacuous, "vacuous"), (c.refused, "refused"), (c.invalid, "invalid")) if n
    )
    said += f", {c.kinks} derivatives at kinks left out" if c.kinks else ""
    return f"{said}; {result.pairs.judged} of {result.pairs.possible} pairs of traits met; {speed}"


def _costs(costs: Costs) -> str:
    calls = costs.calls / max(costs.plain_calls, 1)
    # A subject with saved-tensor hooks of its own hides what it saves from ours.
    kept = f", autograd keeps {costs.saved / costs.plain_saved:.0%} of its bytes" if costs.saved and costs.plain_saved else ""
    return f"costs, in {_cases(costs.cases)}: modules run {calls:.1f} times as often as in plain autograd{kept}"


def _cases(number: int) -> str:
    return "1 case" if number == 1 else f"{number} cases"


def _fault(number: int, fault: Fault, result: CheckResult, *, verbose: bool) -> Iterator[str]:
    what = f"check {fault.check}" if fault.check else f"{fault.kind} of {fault.role}"
    yield f"fault {number} [{fault.fingerprint}]: {what}, after {_cases(fault.cases_to_find)}"
    yield from textwrap.wrap(fault.message, 118, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    if fault.trigger is None:
        yield "  (not shrunk: the case does not end, or cannot be shown again)"
    else:
        yield f"  only when: {', '.join(fault.trigger) or _untold(fault)}"
    if fault.first_divergence is not None:
        yield from _divergence(fault.first_divergence)
    if fault.also_fails:
        yield f"  also fails on this case: {', '.join(fault.also_fails)}"
    out = result.volatile.get("out")
    if out:
        repro, replay = (shlex.quote(f"{out}/{name}") for name in (fault.repro, fault.replay))
        yield f"  repro: python {repro}    replay: gradcheck-plus replay {replay}"
    if verbose or not out:
        yield ""
        lines = fault.program.splitlines() if fault.check else case_lines(Case.from_json(fault.case), result.kind)
        yield from (f"  | {line}" for line in lines)


def _divergence(divergence: Divergence) -> Iterator[str]:
    """Say where the two part first, unless that is what the fault says already."""
    if divergence.kind in ("raises", "not-seen"):
        return
    text = f"parts from plain autograd at `{divergence.source_line}`: " if divergence.source_line else "parts first: "
    yield from textwrap.wrap(
        text + divergence.message, 118, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
    )


def _untold(fault: Fault) -> str:
    """Say why a fault has no trigger: every case shows it, or what the shrunk one cannot do without has no name."""
    if fault.check:
        return "nothing in particular, the sample call shows it"
    operations = [s.operation for s in Case.from_json(fault.case).program.statements]
    simplest = operations in ([], [_SIMPLEST])
    return "nothing in particular, the simplest case shows it" if simplest else "no known trait explains it"


def case_lines(case: Case, kind: str) -> list[str]:
    """Return the modules and primals of a case, as they ran under a kind of subject, and what surrounded them."""
    if case.call:
        return call_lines(case.call)
    lines = program_source(case.program, calls="direct" if kind == "wrapper" else "subject").rstrip().splitlines()
    lines += ["", *input_lines(case, 0)]
    return [*lines, *_unusual("environment", case.environment), *_unusual("plan", case.plan)]


def _unusual(what: str, value: Environment | Plan) -> Iterator[str]:
    """Say which fields of a thing are not as they are by default."""
    default = type(value)()
    said = [f"{f}={getattr(value, f)!r}" for f in value.__struct_fields__ if getattr(value, f) != getattr(default, f)]
    if said:
        yield f"# {what}: {', '.join(said)}"


def call_lines(call: Call) -> list[str]:
    """Return what a case of a function is: its check and its variations."""
    return [f"# check: {call.check}", *(f"# {v.name}, tensor {v.slot}, form {v.choice}" for v in call.variations)]


def _excused(entries: Sequence[Excused], *, verbose: bool) -> Iterator[str]:
    shown = entries if verbose else sorted(entries, key=lambda e: -e.count)[:_SHOWN]
    for e in shown:
        yield f"{e.trait}: {e.kind} of {e.role} in {_cases(e.count)} ({e.source})"
    if len(shown) < len(entries):
        yield f"... and {len(entries) - len(shown)} more; -v shows them"


def _judged(result: CheckResult) -> Iterator[str]:
    yield "judged cases with each trait:"
    text = ", ".join(f"{trait} {count}" for trait, count in sorted(result.traits.items(), key=lambda item: -item[1]))
    yield from textwrap.wrap(text, 116, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def mismatch_text(subject: str, kind: str, case: Case, faults: Sequence[Mismatch], rule: str) -> str:
    """Return the message of one case on which a subject and plain autograd disagree.

    Args:
        subject: the name of the subject.
        kind: its kind.
        case: the case.
        faults: what differs, and is not excused.
        rule: the rule that had the last word on numbers.
    """
    leaves = "leaf" if len(faults) == 1 else "leaves"
    lines = [f"{subject} disagrees with plain autograd on {len(faults)} {leaves} (rule: {rule})", ""]
    lines += [f"  {m.kind:14s} {m.message}" for m in faults[:8]]
    lines += [f"  ... and {len(faults) - 8} more"] if len(faults) > 8 else []
    lines += ["", f"  traits: {', '.join(sorted(traits(case))) or 'none'}", ""]
    return "\n".join([*lines, *(f"  | {line}" for line in case_lines(case, kind))])
