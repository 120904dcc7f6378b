"""What edits are made of."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from gradcheck_plus.case import Case, Container, Cotangent, Name, Program, Segment, Spec, Statement, Tree
from gradcheck_plus.case.trees import walk
from gradcheck_plus.operations import CATALOGUE
from gradcheck_plus.traits import Facts

Edit = Callable[[Case], Case]
T = TypeVar("T", bound=msgspec.Struct)


def replaced(value: T, **changes: object) -> T:
    """Return a struct with some fields changed."""
    return msgspec.structs.replace(value, **changes)


def on_program(change: Callable[[Program], Program]) -> Edit:
    """Edit the program of a case, if it is a generated one; what requires grad further on follows."""

    def edit(case: Case) -> Case:
        return replaced(case, program=propagated(case, change(case.program))) if isinstance(case.program, Program) else case

    return edit


def on_segments(change: Callable[[Segment], Segment]) -> Edit:
    """Edit every segment."""
    return on_program(lambda program: replaced(program, segments=tuple(map(change, program.segments))))


def on_statements(change: Callable[[Statement], Statement]) -> Edit:
    """Edit every statement."""
    return on_segments(lambda segment: replaced(segment, statements=tuple(map(change, segment.statements))))


def propagated(case: Case, program: Program) -> Program:
    """Return a program with `requires_grad` computed anew along its statements."""
    grads = {p.name: p.spec.requires_grad for p in case.primals}
    grads |= {p.name: p.trainable and not p.buffer for p in program.parameters}
    frozen = {s.module for s in program.statements if s.frozen}

    def spec(name: str, known: Spec) -> Spec:
        return Spec(known.shape, known.dtype, grads.get(name, known.requires_grad))

    def follow(s: Statement) -> Statement:
        operation = CATALOGUE[s.operation]
        specs = tuple(spec(o, k) for o, k in zip(s.operands, s.specs, strict=True))
        trained = operation.trainable and s.module not in frozen
        grad = operation.differentiable and not s.no_grad and (trained or any(k.requires_grad for k in specs))
        grads.update({r.name: grad and r.spec.floating for r in s.results})
        return replaced(s, specs=specs, results=tuple(replaced(r, spec=spec(r.name, r.spec)) for r in s.results))

    segments = tuple(replaced(s, statements=tuple(map(follow, s.statements))) for s in program.segments)
    return replaced(program, segments=segments)


def flattened(leaves: Iterable[Tree]) -> Tree:
    """Return a bare value for one leaf, a flat tuple for several."""
    items = tuple(leaves)
    return items[0] if len(items) == 1 and isinstance(items[0], Name) else Container("tuple", items)


def pruned(tree: Tree, keep: Callable[[Tree], bool]) -> Tree | None:
    """Return a tree without the leaves that are not to be kept; None if nothing is left."""
    if not isinstance(tree, Container):
        return tree if keep(tree) else None
    kept = [(i, c) for i, child in enumerate(tree.children) if (c := pruned(child, keep)) is not None]
    if not kept:
        return None
    # The fields of a namedtuple or a dataclass are named by their number.
    keys = tuple(tree.keys[i] for i, _ in kept) if tree.kind == "dict" else tree.keys[: len(kept)]
    return Container(tree.kind, tuple(c for _, c in kept), keys)


def as_dicts(tree: Tree) -> Tree:
    """Return a tree with dicts in the place of namedtuples and dataclasses."""
    if not isinstance(tree, Container):
        return tree
    kind = "dict" if tree.kind in ("namedtuple", "dataclass") else tree.kind
    return Container(kind, tuple(map(as_dicts, tree.children)), tree.keys)


def later(program: Program, index: int) -> set[str]:
    """Return the values that segments after this one are passed."""
    found = set()
    for segment in program.segments[index + 1 :]:
        for tree in segment.inputs:
            found |= {leaf.name for _, leaf in walk(tree) if isinstance(leaf, Name)}
    return found


def following(case: Case, program: Program, renamed: dict[str, str] | None = None) -> Case:
    """Return a case with another program, each cotangent at a place that its value has there, if it has one."""
    places = {(i, p): leaf for i, segment in enumerate(program.segments) for p, leaf in walk(segment.output)}
    cotangents: list[Cotangent] = []
    for c in case.cotangents:
        leaf = dict(walk(case.program.segments[c.segment].output)).get(c.path)
        if not isinstance(leaf, Name):
            continue
        name = (renamed or {}).get(leaf.name, leaf.name)
        taken = {(d.segment, d.path) for d in cotangents}
        free = [place for place, other in places.items() if other == Name(name) and place not in taken]
        free.sort(key=lambda place: place[0] != c.segment)
        cotangents += [replaced(c, segment=segment, path=path) for segment, path in free[:1]]
    changed = replaced(case, cotangents=tuple(cotangents))
    return replaced(changed, program=propagated(changed, program))


def substituted(tree: Tree, renamed: dict[str, str]) -> Tree:
    """Return a tree with other values in the place of some."""
    if isinstance(tree, Container):
        return replaced(tree, children=tuple(substituted(child, renamed) for child in tree.children))
    return Name(renamed[tree.name]) if isinstance(tree, Name) and tree.name in renamed else tree


def reaching(case: Case) -> Case:
    """Return a case in which every output that requires grad receives something."""
    facts = Facts(case)
    more = [
        Cotangent(index, path, 20 + index)
        for index, segment in enumerate(case.program.segments)
        for path, leaf in walk(segment.output)
        if isinstance(leaf, Name) and facts.differentiable(leaf.name) and leaf.name not in facts.reached
    ]
    return replaced(case, cotangents=(*case.cotangents, *more))
