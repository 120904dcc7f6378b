"""One case under one subject: run, gather evidence, judge, and ask the contract."""

from dataclasses import dataclass

from gradcheck_plus.case import Case, ModuleProgram, Primal
from gradcheck_plus.execute import Meter, Tape, Unreplayable, execute, reference
from gradcheck_plus.expectations import Contract, Expectation
from gradcheck_plus.mismatch import Mismatch, Rule
from gradcheck_plus.oracle import Evidence, Judgement, Need, judge
from gradcheck_plus.record import Record
from gradcheck_plus.results import Costs
from gradcheck_plus.subject import Subject
from gradcheck_plus.tolerance import UNIT
from gradcheck_plus.traits import TRAITS, exact, traits

#: Roles that are what a function and its VJP return; the others are what they do beside.
_RETURNED = ("output", "primal", "parameter", "call")


@dataclass(frozen=True)
class Verdict:
    """What is said of one case.

    Attributes:
        name: ``match``, ``refused`` or ``fault``; ``invalid`` where plain autograd raised unannounced. ``refused`` is also what
            a limit excuses wholesale, as of a subject that is documented not to take nested inputs.
        traits: the traits of the case.
        faults: the mismatches that nothing excuses.
        excused: the others, each with the entry that excuses it.
        rule: the rule that had the last word on numbers.
        vacuous: every gradient is zero, and nothing in the case makes it so on purpose.
        reason: what plain autograd raised, of an invalid case; or why a function does not take a call.
        kinks: derivatives that were left out.
    """

    name: str
    traits: frozenset[str]
    faults: tuple[Mismatch, ...] = ()
    excused: tuple[tuple[Mismatch, Expectation], ...] = ()
    rule: Rule = "bitwise"
    vacuous: bool = False
    reason: str = ""
    kinks: int = 0

    @property
    def judged(self) -> frozenset[str]:
        """The traits of which this case says something: none if it is vacuous, refused or invalid.

        Nothing is said of a trait that is the excuse for another output, gradient or exception. Where it excuses a side effect
        alone, as statistics that are updated once more, the gradients of the case have been judged with it.
        """
        if self.vacuous or self.name in ("refused", "invalid"):
            return frozenset()
        return self.traits - {expectation.trait for m, expectation in self.excused if m.role in _RETURNED}


def decide(case: Case, subject: Subject, contract: Contract, *, device: str = "cpu") -> Verdict:
    """Run a case under plain autograd and under a subject, and say what becomes of every difference."""
    found = traits(case)
    plain = execute(case, reference(subject.kind), device=device)
    if plain.raised and "reference-raises" not in found:
        return Verdict("invalid", found, reason=f"{plain.raised.phase}: {plain.raised.type}: {plain.raised.message}")
    record = execute(case, subject, device=device)
    judgement = _judged(case, subject, plain, record, device, exact=contract.equal_bits and exact(found))
    pairs = [(m, contract.excuse(m, found)) for m in judgement.mismatches]
    faults = tuple(m for m, e in pairs if e is None)
    excused = tuple((m, e) for m, e in pairs if e is not None)
    refused = any(e.effect == "refuses" or e.wholesale or m.kind == "raises" for m, e in excused)
    quiet = any(TRAITS[name].quiet for name in found) or any(map(_quiet, case.primals))
    name = "fault" if faults else "refused" if refused else "match"
    vacuous = not plain.raised and not quiet and plain.vacuous
    return Verdict(name, found, faults, excused, judgement.rule, vacuous)


def _quiet(primal: Primal) -> bool:
    """May a primal make gradients zero or absent on purpose, wherever it is passed?"""
    return primal.tensor and (not primal.spec.size or primal.fill != "generic")


def _judged(case: Case, subject: Subject, plain: Record, record: Record, device: str, *, exact: bool) -> Judgement:
    """Hand the oracle what it asks for until it judges."""
    evidence = Evidence(plain, record, exact, UNIT[coarsest(case)])
    while isinstance(said := judge(evidence), Need):
        if said is Need.REPETITION:
            evidence.again = (
                execute(case, reference(subject.kind), device=device, poison=False),
                execute(case, subject, device=device, poison=False),
            )
        else:
            evidence.truth = truth(case, subject, device)
            evidence.nudged = (
                execute(case, reference(subject.kind), device=device, variant="up"),
                execute(case, reference(subject.kind), device=device, variant="down"),
            )
    return said


def costs(case: Case, subject: Subject, *, device: str) -> Costs:
    """Run a case again under plain autograd and under a subject, and measure both."""
    plain, own = Meter(), Meter()
    execute(case, reference(subject.kind), device=device, meter=plain)
    execute(case, subject, device=device, meter=own)
    return Costs(1, plain.calls, own.calls, plain.saved, own.saved)


def truth(case: Case, subject: Subject, device: str) -> Record | None:
    """Return plain autograd in float64 with the noise that the reference drew; None where there is no such thing."""
    if case.program.dtype == "float64":
        return None
    tape = Tape()
    try:
        execute(case, reference(subject.kind), device=device, tape=tape)
        record = execute(case, reference(subject.kind), device=device, variant="truth", tape=tape.rewind())
    except Unreplayable:
        return None
    return None if record.raised else record


def coarsest(case: Case) -> str:
    """Return the least precise dtype that a case computes in."""
    dtypes = {case.environment.autocast, case.program.dtype, *(p.spec.dtype for p in case.primals)}
    dtypes |= {result.spec.dtype for s in case.program.statements for result in s.results}
    if isinstance(case.program, ModuleProgram):
        dtypes |= {result.spec.dtype for result in case.program.results}
    return max((d for d in dtypes if d in UNIT), key=lambda dtype: UNIT[dtype])
