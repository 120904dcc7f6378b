"""Edits of what regions are passed."""

from collections.abc import Callable

from gradcheck_plus.campaign.edits.common import Edit, as_dicts, on_segments, propagated, pruned, replaced
from gradcheck_plus.case import Case, Constant, Name, Primal, Program, Segment, Statement, Tree
from gradcheck_plus.case.case import needed
from gradcheck_plus.case.trees import names, walk
from gradcheck_plus.traits import Facts


def _primals(change: Callable[[Primal], Primal]) -> Edit:
    def edit(case: Case) -> Case:
        changed = replaced(case, primals=tuple(map(change, case.primals)))
        program = case.program
        return replaced(changed, program=propagated(changed, program)) if isinstance(program, Program) else changed

    return edit


def _differentiable(p: Primal) -> Primal:
    return replaced(p, spec=replaced(p.spec, requires_grad=True)) if p.spec.floating else p


def _pruned_inputs(keep: Callable[[Segment, Tree], bool]) -> Edit:
    """Take leaves out of the arguments of every segment."""

    def change(s: Segment) -> Segment:
        args = tuple(t for tree in s.args if (t := pruned(tree, lambda leaf: keep(s, leaf))) is not None)
        kwargs = tuple((k, t) for k, tree in s.kwargs if (t := pruned(tree, lambda leaf: keep(s, leaf))) is not None)
        return replaced(s, args=args, kwargs=kwargs)

    return lambda case: _needed(on_segments(change)(case))


def _needed(case: Case) -> Case:
    return replaced(case, primals=needed(case.primals, case.program.segments))


def _used(segment: Segment, leaf: Tree) -> bool:
    used = {o for s in segment.statements for o in s.operands} | set(names(segment.output))
    return isinstance(leaf, Constant) or not segment.statements or (isinstance(leaf, Name) and leaf.name in used)


def _live(case: Case) -> Case:
    """Take out the statements that nothing depends on, and the inputs that nothing uses then."""
    shared = {t.module for t in case.program.statements if not t.owner}

    def change(s: Segment) -> Segment:
        live = Facts.live(s)
        kept: list[Statement] = []
        for t in reversed(s.statements):
            if (t.owner and t.module in shared) or any(r.name in live for r in t.results):
                kept.insert(0, t)
                live |= set(t.operands)
        return replaced(s, statements=tuple(kept)) if kept and s.form != "sequential" else s

    return _pruned_inputs(_used)(on_segments(change)(case))


def _something(segment: Segment, leaf: Tree) -> bool:
    return not (isinstance(leaf, Constant) and leaf.value is None)


def _flat(segment: Segment) -> Segment:
    """Pass what containers held as arguments of their own."""
    return replaced(segment, args=tuple(leaf for tree in segment.args for _, leaf in walk(tree)), rebinds=())


def _dicts(segment: Segment) -> Segment:
    return replaced(segment, args=tuple(map(as_dicts, segment.args)))


EDITS: tuple[tuple[str, Edit], ...] = (
    ("strided-input", _primals(lambda p: replaced(p, layout="contiguous"))),
    ("expanded-input", _primals(lambda p: replaced(p, layout="contiguous"))),
    ("non-leaf-input", _primals(lambda p: replaced(p, layout="contiguous"))),
    ("special-values", _primals(lambda p: replaced(p, fill="generic"))),
    ("duplicate-input", _primals(lambda p: replaced(p, alias=""))),
    ("shared-storage", _primals(lambda p: replaced(p, share=""))),
    ("mixed-requires-grad", _primals(_differentiable)),
    ("no-grad-input", _primals(_differentiable)),
    ("unused-input", _live),
    ("integer-input", _pruned_inputs(_used)),
    ("boolean-input", _pruned_inputs(_used)),
    ("python-value", _pruned_inputs(_used)),
    ("none-input", _pruned_inputs(_something)),
    ("kwarg-tensor", on_segments(lambda s: replaced(s, args=s.inputs, kwargs=()))),
    ("container-rebound", on_segments(lambda s: replaced(s, rebinds=()))),
    ("namedtuple-input", on_segments(_dicts)),
    ("dataclass-input", on_segments(_dicts)),
    ("nested-input", on_segments(_flat)),
)
