"""Why a correct subject need not give equal bits: what the exactness rule reads off a case before anything runs."""

from collections import Counter

from gradcheck_plus.case import Segment, Statement
from gradcheck_plus.case.trees import names
from gradcheck_plus.operations import CATALOGUE
from gradcheck_plus.traits.facts import Facts


def summed_across_cut(f: Facts) -> bool:
    """Does a gradient sum three contributions or more, not all from one side of a cut?

    Two contributions give the same bits in either order; three need not. A gradient that was there before, or that an
    earlier backward left, is a contribution too.
    """
    before = 1 if f.environment.existing_grad or f.environment.backwards > 1 else 0
    counts: Counter[str] = Counter(f.cotangent_names)
    sides: dict[str, set[object]] = {name: {"loss"} for name in counts}
    for side, segment in f.pieces:
        for statement in segment.statements:
            operation = CATALOGUE[statement.operation]
            apart = operation.line.count("{a}") if statement in f.wrapped_calls else 1
            uses = max(operation.uses, apart)
            if apart > 1:  # each argument is a leaf of its own inside
                sides.setdefault(statement.operands[0], set()).add("arguments")
            for position, name in enumerate((*statement.operands, statement.module)):
                if name:
                    counts[name] += uses if position == 0 or name == statement.module else 1
                    sides.setdefault(name, set()).add(side)
        for name in names(segment.output):
            sides.setdefault(name, set()).add(side)
    for p in f.case.primals:  # a tensor that is passed twice is two leaves inside
        if p.alias:
            counts[p.alias] += counts[p.name]
            sides.setdefault(p.alias, set()).add(p.name)
    return any(count + before > 2 and len(sides[name]) > 1 for name, count in counts.items())


def shared_cast(f: Facts) -> bool:
    """Does autocast make one low copy of an input that a region uses twice, or one a use?

    It remembers the copies of leaves that are no views; a value that is none becomes one inside a region. What control flow
    hands on may be the input itself.
    """
    if not f.environment.autocast:
        return False
    for segment in (*f.regions, *(piece for _, piece in f.pieces if piece.region and f.wrapped_calls)):
        uses: Counter[str] = Counter()
        itself: dict[str, str] = {}
        for statement in segment.statements:
            operation = CATALOGUE[statement.operation]
            operands = [itself.get(name, name) for name in statement.operands]
            if "control-flow" in operation.traits:
                itself |= {result.name: operands[0] for result in statement.results}
                continue
            for position, name in enumerate(operands):
                uses[name] += operation.uses if position == 0 else 1
        if any(uses[name] > 1 and f.differentiable(name) for name in names(*segment.inputs)):
            return True
    return False


def free_strides(f: Facts) -> bool:
    """May a gradient cross a cut with other than standard strides, towards an operation whose bits depend on them?

    Where a graph ends in a leaf, autograd lays the gradient out as the leaf is; where it goes on, it does not. And where a
    value is both returned and used inside, zeros may be added for what the caller does not send: the sum has the strides of
    one or of the other.
    """
    sensitive = {p.name for p in f.passed if p.layout == "expanded-view" and p.spec.requires_grad}
    odd = any(c.layout != "contiguous" for c in f.case.cotangents)
    several = sum(not _elementwise(s) for s in f.program.statements) > 1
    for _, segment in f.pieces:
        lays_out = any(not _elementwise(s) for s in segment.statements)
        crosses = _crosses(f, segment, sensitive)
        if crosses and (lays_out or odd):
            return True
        if lays_out or crosses:
            sensitive |= f.made(segment)
    return (odd or several) and any(_returned_and_used(f, s) for s in f.regions if not all(map(_elementwise, s.statements)))


def _returned_and_used(f: Facts, segment: Segment) -> bool:
    used = {o for s in segment.statements for o in s.operands}
    return any(name in used and f.differentiable(name) for name in names(segment.output))


def _crosses(f: Facts, segment: Segment, sensitive: set[str]) -> bool:
    return any(name in sensitive and f.differentiable(name) for name in names(*segment.inputs))


def _elementwise(statement: Statement) -> bool:
    """Do the bits of a statement's gradients not depend on the strides of its cotangent?"""
    operation = CATALOGUE[statement.operation]
    return operation.elementwise or not operation.differentiable
