"""Edits of the surroundings, and of cotangents."""

from gradcheck_plus.campaign.edits.common import Edit, on_program, reaching, replaced
from gradcheck_plus.campaign.edits.respecified import respecified
from gradcheck_plus.case import Case, ModuleProgram, Name, Program
from gradcheck_plus.case.trees import walk
from gradcheck_plus.traits import Facts


def _set(**changes: object) -> Edit:
    return lambda case: replaced(case, environment=replaced(case.environment, **changes))


def _uncast(case: Case) -> Case:
    """Switch autocast off. Where an operation does not take what it is given then, nothing changes."""
    plain = replaced(case, environment=replaced(case.environment, autocast=""))
    return next(respecified(plain, lambda p: p.spec), case) if isinstance(case.program, Program) else plain


def _without_hook(hook: str) -> Edit:
    def edit(case: Case) -> Case:
        hooks = tuple(h for h in case.environment.hooks if h != hook)
        return replaced(case, environment=replaced(case.environment, hooks=hooks))

    return edit


def _cotangents(**changes: object) -> Edit:
    return lambda case: replaced(case, cotangents=tuple(replaced(c, **changes) for c in case.cotangents))


def _undrawn(*, first: bool) -> Edit:
    def change(program: Program) -> Program:
        kept = [replaced(s, draws=0 if (i == 0) == first else s.draws) for i, s in enumerate(program.segments)]
        return replaced(program, segments=tuple(kept))

    def edit(case: Case) -> Case:
        if isinstance(case.program, ModuleProgram):
            return replaced(case, program=replaced(case.program, draws=0))
        return on_program(change)(case)

    return edit


def _inner_only(case: Case) -> Case:
    """Take the cotangents of outputs that a later segment uses away."""
    crossing = {name for name, made, _ in Facts(case).crossings if made >= 0}
    kept = []
    for c in case.cotangents:
        leaf = dict(walk(case.program.segments[c.segment].output)).get(c.path)
        if not (isinstance(leaf, Name) and leaf.name in crossing):
            kept.append(c)
    return replaced(case, cotangents=tuple(kept)) if kept else case


EDITS: tuple[tuple[str, Edit], ...] = (
    ("eval", _set(train=True)),
    ("autocast-bfloat16", _uncast),
    ("autocast-float16", _uncast),
    ("draw-after", _set(draws_after=0)),
    ("draw-before", _undrawn(first=True)),
    ("draw-between", _undrawn(first=False)),
    ("existing-grad", _set(existing_grad=False)),
    ("reused-input", _set(reuses_inputs=False)),
    ("two-forwards", _set(schedule="F0F1")),
    ("accumulation", _set(schedule="F0", reuses_inputs=False)),
    ("second-backward", _set(schedule="F0")),
    ("parameter-changed", _set(changes_parameter=False)),
    ("reversed-keys", _set(reversed_keys=False)),
    ("parameter-hook", _without_hook("parameter")),
    ("input-hook", _without_hook("input")),
    ("post-accumulate-hook", _without_hook("post-accumulate")),
    ("forward-hook", _without_hook("forward")),
    ("backward-hook", _without_hook("backward")),
    ("output-hook", _without_hook("output")),
    ("reordered-weights", _set(weights="forward")),
    ("delayed-weights", _set(weights="")),
    ("reversed-parameters", _set(reversed_parameters=False)),
    ("repeated-input", _set(repeated_input=False)),
    ("expanded-cotangent", _cotangents(layout="contiguous")),
    ("strided-cotangent", _cotangents(layout="contiguous")),
    ("zero-cotangent", _cotangents(fill="generic")),
    ("one-hot-cotangent", _cotangents(fill="generic")),
    ("none-cotangent", reaching),
    ("outer-use", _inner_only),
)
