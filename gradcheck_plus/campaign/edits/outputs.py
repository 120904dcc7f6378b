"""Edits of what regions return. Cotangents follow the values that they belong to."""

from collections.abc import Callable

from gradcheck_plus.campaign.edits.common import (
    Edit,
    as_dicts,
    flattened,
    following,
    later,
    on_program,
    pruned,
    replaced,
    substituted,
)
from gradcheck_plus.case import Case, Name, Program, Segment, Statement, Tree, Value
from gradcheck_plus.case.trees import names, walk
from gradcheck_plus.operations import CATALOGUE
from gradcheck_plus.traits import Facts

_Change = Callable[[Facts, int, Segment], Tree | None]


def _outputs(change: _Change) -> Edit:
    def edit(case: Case) -> Case:
        if not isinstance(case.program, Program):
            return case
        facts = Facts(case)
        segments = []
        for index, segment in enumerate(case.program.segments):
            tree = change(facts, index, segment)
            segments.append(segment if tree is None else replaced(segment, output=tree))
        return following(case, replaced(case.program, segments=tuple(segments)))

    return edit


def _without(unwanted: Callable[[Facts, Segment, str], bool]) -> Edit:
    """Take values that no later segment uses out of the outputs."""

    def change(facts: Facts, index: int, segment: Segment) -> Tree | None:
        assert isinstance(facts.program, Program)
        needed = later(facts.program, index)
        return pruned(
            segment.output,
            lambda leaf: not isinstance(leaf, Name) or leaf.name in needed or not unwanted(facts, segment, leaf.name),
        )

    return _outputs(change)


def _first_only(facts: Facts, index: int, segment: Segment) -> Tree | None:
    """Return only the first differentiable value, and what later segments use."""
    assert isinstance(facts.program, Program)
    needed = later(facts.program, index)
    first = next((n for n in names(segment.output) if facts.differentiable(n) and n not in needed), None)
    return pruned(
        segment.output,
        lambda leaf: not isinstance(leaf, Name) or not facts.differentiable(leaf.name) or leaf.name in {first, *needed},
    )


def _scaled(wanted: Callable[[Statement], bool]) -> Edit:
    """Put one more statement behind the values that are returned, so that an output is neither a view nor kept."""

    def change(program: Program) -> Program:
        segments = []
        for index, segment in enumerate(program.segments):
            makers = {r.name: (s, r) for s in segment.statements for r in s.results}
            renamed = {
                n: Value(f"{n}_scaled", makers[n][1].spec)
                for n in dict.fromkeys(names(segment.output))
                if n in makers and wanted(makers[n][0]) and makers[n][1].spec.floating
            }
            usable = segment.form != "sequential" and not later(program, index) & set(renamed)
            segments.append(_appended(segment, makers, renamed) if usable else segment)
        return replaced(program, segments=tuple(segments))

    return lambda case: _kept_in_place(case, on_program(change)(case))


def _kept_in_place(case: Case, changed: Case) -> Case:
    """Return the changed case with the cotangents at the places where they were."""
    paths = {(i, p) for i, s in enumerate(changed.program.segments) for p, _ in walk(s.output)}
    return replaced(changed, cotangents=tuple(c for c in case.cotangents if (c.segment, c.path) in paths))


def _appended(segment: Segment, makers: dict[str, tuple[Statement, Value]], renamed: dict[str, Value]) -> Segment:
    more = [Statement("scale", (new,), (old,), (makers[old][1].spec,), (("c", 2.0),)) for old, new in renamed.items()]

    names_of = {old: new.name for old, new in renamed.items()}
    output = substituted(segment.output, names_of)
    return replaced(segment, statements=(*segment.statements, *more), output=output)


def _once(facts: Facts, index: int, segment: Segment) -> Tree | None:
    return flattened(dict.fromkeys(leaf for _, leaf in walk(segment.output)))


EDITS: tuple[tuple[str, Edit], ...] = (
    ("passthrough-output", _without(lambda f, s, name: name in names(*s.inputs))),
    ("integer-output", _without(lambda f, s, name: not f.specs[name].floating)),
    ("non-grad-output", _without(lambda f, s, name: f.specs[name].floating and not f.differentiable(name))),
    ("several-outputs", _outputs(_first_only)),
    ("namedtuple-output", _outputs(lambda f, i, s: as_dicts(s.output))),
    ("dataclass-output", _outputs(lambda f, i, s: as_dicts(s.output))),
    ("constant-output", _outputs(lambda f, i, s: pruned(s.output, lambda leaf: isinstance(leaf, Name)))),
    ("duplicate-output", _outputs(_once)),
    ("nested-output", _outputs(lambda f, i, s: flattened(leaf for _, leaf in walk(s.output)))),
    ("view-output", _scaled(lambda s: CATALOGUE[s.operation].view or CATALOGUE[s.operation].inner_view(s.specs[0]))),
    ("saved-output", _scaled(lambda s: CATALOGUE[s.operation].saves_result)),
)
