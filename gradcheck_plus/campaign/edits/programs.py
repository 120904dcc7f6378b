"""Edits of the function itself."""

from gradcheck_plus.campaign.edits.common import Edit, on_program, on_segments, on_statements, replaced
from gradcheck_plus.campaign.edits.respecified import respecified
from gradcheck_plus.case import Case, Program, Spec, Statement
from gradcheck_plus.operations import CATALOGUE

#: What stands in for an operation: one that does as little as possible, and one that has parameters.
_PLAIN = Statement("scale", (), (), (), (("c", 2.0),))
_TRAINED = Statement("square_linear", (), (), ())
_LAYER = "tanh_module"

_OPERATION_TRAITS = (
    "dropout", "random", "random-activation", "batch-norm", "recurrent", "nested-module", "in-place", "view", "custom-function",
    "control-flow", "low-precision", "detached-value", "in-place-view", "counted-calls", "state-in-result", "inner-checkpoint",
)  # fmt: skip


def _without_operation(trait: str, other: Statement) -> Edit:
    """Put another operation in the place of those with a trait, where everything along the program takes what comes out."""

    def edit(case: Case) -> Case:
        if not isinstance(case.program, Program):
            return case
        for number in range(len(case.program.statements)):
            old = case.program.statements[number]
            new = _instead(case, old, trait, other)
            case = next(respecified(case, lambda p: p.spec, {old: new}), case) if new else case
        return case

    return edit


def _instead(case: Case, s: Statement, trait: str, other: Statement) -> Statement | None:
    layers = any(s in segment.statements and segment.form == "sequential" for segment in case.program.segments)
    stand_in = replaced(other, operation=_LAYER) if layers and other is _PLAIN else other
    operation = CATALOGUE[stand_in.operation]
    shared = bool(s.module) and any(t.module == s.module and t != s for t in case.program.statements)
    if trait not in CATALOGUE[s.operation].traits or len(s.results) > 1 or shared:
        return None
    module = (s.module or f"{stand_in.operation}_{s.results[0].name}") if operation.setup else ""
    attributes = stand_in.attributes if operation.attributes else ()
    return Statement(stand_in.operation, s.results, s.operands[:1], s.specs[:1], attributes, module)


def _untied(program: Program) -> Program:
    """Give every use of a module its own."""
    seen: set[str] = set()

    def own(s: Statement) -> Statement:
        if not s.module or s.module not in seen:
            seen.add(s.module)
            return s
        return replaced(s, module=f"{s.module}_{s.results[0].name}", owner=True)

    segments = tuple(replaced(s, statements=tuple(map(own, s.statements))) for s in program.segments)
    return replaced(program, segments=segments)


def _thawed(program: Program) -> Program:
    parameters = tuple(replaced(p, trainable=not p.buffer) for p in program.parameters)
    segments = tuple(
        replaced(segment, statements=tuple(replaced(s, frozen=False) for s in segment.statements))
        for segment in program.segments
    )
    return replaced(program, parameters=parameters, segments=segments)


def _used_parameters(program: Program) -> Program:
    used = {o for s in program.statements for o in s.operands}
    return replaced(program, parameters=tuple(p for p in program.parameters if p.name in used))


def _unbuffered(program: Program) -> Program:
    return replaced(program, parameters=tuple(replaced(p, buffer=False, trainable=True) for p in program.parameters))


def _in_float32(case: Case) -> Case:
    """Compute in float32 what was computed in float64."""
    if not isinstance(case.program, Program):
        return case

    def cast(spec: Spec) -> Spec:
        return replaced(spec, dtype="float32") if spec.dtype == "float64" else spec

    def change(s: Statement) -> Statement:
        results = tuple(replaced(r, spec=cast(r.spec)) for r in s.results)
        return replaced(s, specs=tuple(map(cast, s.specs)), results=results)

    primals = tuple(replaced(p, spec=cast(p.spec)) for p in case.primals)
    program = replaced(case.program, dtype="float32")
    return on_statements(change)(replaced(case, program=program, primals=primals))


EDITS: tuple[tuple[str, Edit], ...] = (
    *((trait, _without_operation(trait, layer)) for trait in _OPERATION_TRAITS for layer in (_PLAIN, _TRAINED)),
    ("float64", _in_float32),
    ("no-grad-island", on_statements(lambda s: replaced(s, no_grad=False))),
    ("tied-parameter", on_program(_untied)),
    ("frozen-parameter", on_program(_thawed)),
    ("unused-parameter", on_program(_used_parameters)),
    ("direct-buffer", on_program(_unbuffered)),
    ("function-region", on_segments(lambda s: replaced(s, form="module" if s.form == "function" else s.form))),
    ("sequential-region", on_segments(lambda s: replaced(s, form="module" if s.form == "sequential" else s.form))),
    ("plain-segment", on_segments(lambda s: replaced(s, region=True))),
)
