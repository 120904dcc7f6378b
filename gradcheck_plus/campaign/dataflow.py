"""Smaller programs: edits of the data flow.

A statement can be taken out of the middle, a value can be handed in that was computed before, two segments can become one.
"""

import operator
from collections.abc import Iterator
from functools import partial

from gradcheck_plus.campaign.edits.common import flattened, following, later, pruned, reaching, replaced, substituted
from gradcheck_plus.campaign.edits.respecified import respecified
from gradcheck_plus.case import Case, Container, Name, Parameter, Primal, Program, Segment, Spec, Statement, Tree
from gradcheck_plus.case.trees import names, walk


def smaller(case: Case) -> Iterator[Case]:
    """Yield the cases that are one step smaller, the boldest steps first. Not all of them are valid."""
    if isinstance(case.program, Program):
        for candidate in _candidates(case, case.program):
            tidy = _tidied(case, candidate)
            yield tidy if tidy.cotangents else reaching(tidy)


def _candidates(case: Case, program: Program) -> Iterator[Case]:
    yield from _without_segments(case, program)
    yield from _merged(case, program)
    for index, segment in enumerate(program.segments):
        for statement in reversed(segment.statements):
            yield from _without_statement(case, program, index, statement)
    yield from _without_outputs(case, program)
    yield from _without_inputs(case, program)


def _tidied(before: Case, after: Case) -> Case:
    """Pass no value that was used before and is not any more, and make no primal that is not passed."""
    assert isinstance(after.program, Program)
    was_used = {name for segment in before.program.segments for name in _uses(segment)}
    segments = []
    for segment in after.program.segments:
        gone = {n for n in names(*segment.inputs) if n in was_used and n not in _uses(segment)}
        segments.append(_not_passed(segment, gone) if gone else segment)
    left = {operand for s in after.program.statements for operand in s.operands}
    parameters = tuple(p for p in after.program.parameters if p.name in left or p.name not in was_used)
    program = replaced(after.program, segments=tuple(segments), parameters=parameters)
    passed = {n for s in segments for n in names(*s.inputs)}
    holders = {p.alias or p.share for p in after.primals if p.name in passed}
    kept = replaced(after, primals=tuple(p for p in after.primals if p.name in passed | holders))
    return following(kept, program) if program != after.program else replaced(kept, program=program)


def _uses(segment: Segment) -> set[str]:
    return {o for s in segment.statements for o in s.operands} | set(names(segment.output))


def _not_passed(segment: Segment, gone: set[str]) -> Segment:
    args = tuple(t for tree in segment.args if (t := _left(tree, gone)) is not None)
    kwargs = tuple((k, t) for k, tree in segment.kwargs if (t := _left(tree, gone)) is not None)
    rebinds = tuple(n for n in segment.rebinds if n not in gone)
    return replaced(segment, args=args, kwargs=kwargs, rebinds=rebinds)


def _with_segment(program: Program, index: int, segment: Segment) -> Program:
    segments = list(program.segments)
    segments[index] = segment
    return replaced(program, segments=tuple(segments))


def _primal(name: str, spec: Spec, seed: int) -> Primal:
    known = replaced(spec, dtype="float32") if spec.dtype == "float" else spec
    return Primal(name, known, seed)


# segments ---------------------------------------------------------------------------------------------------------------


def _without_segments(case: Case, program: Program) -> Iterator[Case]:
    """Drop the last segment; or the first one, handing in what it made."""
    if len(program.segments) < 2:
        return
    kept = program.segments[:-1]
    parameters = tuple(p for p in program.parameters if p.segment < len(kept))
    yield _owning(following(case, replaced(program, segments=kept, parameters=parameters)))
    first, rest = program.segments[0], program.segments[1:]
    needed = later(program, 0)
    made = [r for s in first.statements for r in s.results if r.name in needed]
    primals = (*case.primals, *(_primal(r.name, r.spec, 40 + i) for i, r in enumerate(made)))
    moved = tuple(replaced(p, segment=max(p.segment - 1, 0)) for p in program.parameters)
    shifted = replaced(case, primals=primals)
    yield _owning(following(shifted, replaced(program, segments=rest, parameters=moved)))


def _merged(case: Case, program: Program) -> Iterator[Case]:
    """Make one segment of two neighbours."""
    for i in range(len(program.segments) - 1):
        a, b = program.segments[i : i + 2]
        if "sequential" in (a.form, b.form):
            continue
        made = {r.name for s in a.statements for r in s.results}
        passed = set(names(*a.inputs))
        args = (*a.args, *(t for tree in b.inputs if (t := _left(tree, made | passed)) is not None))
        output = flattened(dict.fromkeys(leaf for _, leaf in (*walk(a.output), *walk(b.output))))
        one = replaced(a, statements=(*a.statements, *b.statements), args=args, output=output, region=a.region or b.region)
        segments = (*program.segments[:i], one, *program.segments[i + 2 :])
        parameters = tuple(replaced(p, segment=p.segment - (p.segment > i)) for p in program.parameters)
        yield following(case, replaced(program, segments=segments, parameters=parameters))


def _left(tree: Tree, known: set[str]) -> Tree | None:
    return pruned(tree, lambda leaf: not (isinstance(leaf, Name) and leaf.name in known))


def _owning(case: Case) -> Case:
    """Let the first statement that is left own each module, and leave out parameters that nothing uses any more."""
    assert isinstance(case.program, Program)
    seen: set[str] = set()
    homes: dict[str, int] = {}
    segments = []
    for index, segment in enumerate(case.program.segments):
        statements = []
        for s in segment.statements:
            statements.append(replaced(s, owner=s.module not in seen) if s.module else s)
            seen.add(s.module)
            for operand in s.operands:
                homes.setdefault(operand, index)
        segments.append(replaced(segment, statements=tuple(statements)))
    parameters = tuple(_at_home(p, homes) for p in case.program.parameters if p.segment < len(segments))
    return replaced(case, program=replaced(case.program, segments=tuple(segments), parameters=parameters))


def _at_home(p: Parameter, homes: dict[str, int]) -> Parameter:
    return replaced(p, segment=homes.get(p.name, p.segment))


# statements -------------------------------------------------------------------------------------------------------------


def _without_statement(case: Case, program: Program, index: int, statement: Statement) -> Iterator[Case]:
    """Take a statement out: put its operand in the place of its result, or hand the result in as a primal."""
    segment = program.segments[index]
    kept = tuple(s for s in segment.statements if s is not statement)
    if not kept:
        return
    rest = _with_segment(program, index, replaced(segment, statements=kept))
    result, operand = statement.results[0], statement.operands[0]
    if len(statement.results) == 1 and result.spec.floating:
        renamed = _owning(following(case, _renamed(rest, {result.name: operand}), {result.name: operand}))
        same = (result.spec.shape, result.spec.dtype) == (statement.specs[0].shape, statement.specs[0].dtype)
        yield from (renamed,) if same else respecified(renamed, lambda p: p.spec)
    used = {o for s in program.statements for o in s.operands} | set(names(*(s.output for s in program.segments)))
    wanted = [r for r in statement.results if r.name in used]
    yield from _unreturned(case, rest, index, statement)
    if segment.form != "sequential" or statement is segment.statements[0]:
        args = (*segment.args, *(Name(r.name) for r in wanted)) if segment.form != "sequential" else (Name(result.name),)
        primals = (*case.primals, *(_primal(r.name, r.spec, 60 + int(r.name.strip("h_scaled") or 0)) for r in wanted))
        handed = _with_segment(rest, index, replaced(rest.segments[index], args=args))
        yield _owning(following(replaced(case, primals=primals), handed))


def _unreturned(case: Case, rest: Program, index: int, statement: Statement) -> Iterator[Case]:
    """Return less, or another value, where a statement that was taken out made only what is returned."""
    made = {r.name for r in statement.results}
    segment = rest.segments[index]
    if made & (later(rest, index) | {o for s in rest.statements for o in s.operands}) or not made & set(names(segment.output)):
        return
    output = pruned(segment.output, lambda leaf: not (isinstance(leaf, Name) and leaf.name in made))
    output = output if output is not None and names(output) else Name(segment.statements[-1].results[0].name)
    yield _owning(following(case, _with_segment(rest, index, replaced(segment, output=output))))


def _renamed(program: Program, renamed: dict[str, str]) -> Program:
    def change(segment: Segment) -> Segment:
        return replaced(
            segment,
            statements=tuple(_with_operands(s, renamed) for s in segment.statements),
            args=tuple(substituted(t, renamed) for t in segment.args),
            kwargs=tuple((k, substituted(t, renamed)) for k, t in segment.kwargs),
            output=substituted(segment.output, renamed),
        )

    return replaced(program, segments=tuple(map(change, program.segments)))


def _with_operands(s: Statement, renamed: dict[str, str]) -> Statement:
    return replaced(s, operands=tuple(renamed.get(o, o) for o in s.operands))


# inputs and outputs -----------------------------------------------------------------------------------------------------


def _without_outputs(case: Case, program: Program) -> Iterator[Case]:
    """Return one value less, of those that no later segment uses."""
    for index, segment in enumerate(program.segments):
        needed = later(program, index)
        leaves = [leaf for _, leaf in walk(segment.output)]
        if len(leaves) == 1 and isinstance(segment.output, Container) and segment.output.kind == "tuple":
            yield following(case, _with_segment(program, index, replaced(segment, output=flattened(leaves))))
        for leaf in leaves if len(leaves) > 1 else []:
            if isinstance(leaf, Name) and leaf.name in needed:
                continue
            output = pruned(segment.output, partial(operator.ne, leaf))
            if output is not None:
                yield following(case, _with_segment(program, index, replaced(segment, output=output)))


def _without_inputs(case: Case, program: Program) -> Iterator[Case]:
    """Pass one value less, of those that are not used."""
    for index, segment in enumerate(program.segments):
        for name in [n for n in names(*segment.inputs) if n not in _uses(segment)]:
            yield replaced(case, program=_with_segment(program, index, _not_passed(segment, {name})))
