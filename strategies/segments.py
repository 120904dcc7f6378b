"""Segments: where a program is cut, and what goes in and comes out of each part."""

from collections.abc import Sequence
from typing import Literal

from gradcheck_plus.case import Constant, Container, Name, Parameter, Primal, Scalar, Segment, Tree
from gradcheck_plus.operations import CATALOGUE
from gradcheck_plus.strategies.chooser import Chooser
from gradcheck_plus.strategies.statements import Builder
from gradcheck_plus.strategies.trees import container_kinds, nested

Form = Literal["module", "function", "sequential"]
_CONSTANTS: tuple[Scalar, ...] = (None, 3, "text")


def bodies(c: Chooser, b: Builder, most: int) -> list[Form]:
    """Draw the statements of all segments; return the form of each. Shrinks towards one segment of one statement."""
    count = 1 + (c.flagged("many-segments", (1, 2)) or 0)
    forms = []
    for segment in range(count):
        forms.append(_form(c, b, segment))
        length = c.integer(1, most)
        if forms[-1] == "sequential":
            _chain(b, segment, length)
        else:
            for number in range(length):
                b.statement(segment, first=number == 0)
    _ensure_gradient(b, forms)
    owners = [segment for segment, form in enumerate(forms) if form != "sequential"]
    if owners and c.given("unused-parameter"):
        b.unused_parameter(owners[0])
    return forms


def _form(c: Chooser, b: Builder, segment: int) -> Form:
    if b.chainable(b.scope()[0] if segment == 0 else b.scope()[-1]) and c.flag("sequential-region"):
        return "sequential"
    return "function" if c.flag("function-region") else "module"


def _chain(b: Builder, segment: int, length: int) -> None:
    """Append a chain of layers, whose inner values nothing else can see."""
    value, operation = b.scope()[0] if segment == 0 else b.scope()[-1], ""
    for number in range(length):
        if not b.chainable(value):
            break
        inner, value = value, b.chained(value, segment, operation)
        operation = b.statements[segment][-1].operation
        if number:
            b.values[inner].alive = False


def _ensure_gradient(b: Builder, forms: list[Form]) -> None:
    """Make sure that something is returned that a gradient flows back from: a case without any tests nothing.

    Returned is what nothing uses; of the last segment, anything else is at need.
    """
    last = len(forms) - 1
    made = [live for live in b.values.values() if live.alive and live.segment >= 0 and live.spec.requires_grad]
    if any(live.segment == last or not live.uses for live in made):
        return
    operand = b.scope()[-1]
    b.parameters.append(_weight(b, operand, last))
    b.append(CATALOGUE["mul"], (operand, b.parameters[-1].name), last)
    forms[last] = "module"


def _weight(b: Builder, operand: str, segment: int) -> Parameter:
    return Parameter(f"p{len(b.parameters)}", b.values[operand].spec.shape[-1:], segment)


def segments(c: Chooser, b: Builder, forms: Sequence[Form], primals: Sequence[Primal]) -> list[Segment]:
    """Cut: draw the signature and the output of every segment; shrinks towards positional tensors and a bare output."""
    regions = [not (len(forms) > 1 and c.flag("plain-segment")) for _ in forms]
    if not any(regions):
        regions[-1] = True
    drawn: list[Segment] = []
    spare = [p.name for p in primals if not b.values[p.name].uses] if c.flag("unused-input") else []
    for index, form in enumerate(forms):
        statements = tuple(b.statements[index])
        used = _used(b, index)
        given = used + [name for name in spare if index == 0 and form != "sequential" and name not in used]
        args, kwargs = _signature(c, b, given, form)
        output = _output(c, b, index, given, form)
        draws = c.integer(1, 3) if c.given("draw-between" if index else "draw-before") else 0
        rebinds = _rebound(c, b, args) if regions[index] and form != "sequential" else ()
        drawn.append(Segment(statements, args, kwargs, output, form, regions[index], draws, rebinds))
    return drawn


def _used(b: Builder, index: int) -> list[str]:
    """Return the values that a segment takes from outside, in the order of their first use."""
    made = {r.name for s in b.statements[index] for r in s.results}
    operands = dict.fromkeys(o for s in b.statements[index] for o in s.operands)
    return [o for o in operands if o in b.values and o not in made]


def _signature(c: Chooser, b: Builder, given: list[str], form: Form) -> tuple[tuple[Tree, ...], tuple[tuple[str, Tree], ...]]:
    args: list[Tree] = []
    rest = list(given)
    if form == "sequential":
        return (Name(rest[0]),), ()
    count = c.flagged("nested-input", range(1, len(rest) + 1)) if rest else None
    if count:
        inner: list[Tree] = [Name(name) for name in rest[:count]]
        if c.flag("none-input"):
            inner.append(Constant(None))
        args.append(nested(c, inner, container_kinds(c, "input")))
        rest = rest[count:]
    kwargs: list[tuple[str, Tree]] = []
    for name in rest:
        if (args or len(rest) > 1) and c.flag("kwarg-tensor"):
            kwargs.append((name, Name(name)))
        else:
            args.append(Name(name))
    if c.flag("none-input"):
        args.append(Constant(None))
    return tuple(args), tuple(kwargs)


def _output(c: Chooser, b: Builder, index: int, given: list[str], form: Form) -> Tree:
    made = [r.name for s in b.statements[index] for r in s.results]
    later = {o for other in range(index + 1, len(b.statements)) for o in _used(b, other)}
    ends = [n for n in made if n in later or (b.values[n].alive and not b.values[n].uses and _wanted(c, b, n))]
    ends = ends or [n for n in made if b.values[n].alive][-1:]
    if form == "sequential":
        return Name(made[-1])
    if index == len(b.statements) - 1 and not any(b.values[n].spec.requires_grad for n in ends):
        ends += [n for n in made if b.values[n].alive and b.values[n].spec.requires_grad][-1:]
    tensors = [n for n in given if b.values[n].spec.dtype != "python"]
    if tensors and (passed := c.flagged("passthrough-output", tensors)):
        ends.append(passed)
    items: list[Tree] = [Name(n) for n in ends]
    if c.flag("duplicate-output"):
        items.append(items[0])
    if c.flag("constant-output"):
        items.insert(c.integer(0, len(items)), Constant(c.pick(_CONSTANTS)))
    if len(items) > 1 and c.chance(30):
        items.reverse()
    if c.flag("nested-output"):
        return nested(c, items, container_kinds(c, "output"))
    return items[0] if len(items) == 1 and isinstance(items[0], Name) else Container("tuple", tuple(items))


def _wanted(c: Chooser, b: Builder, name: str) -> bool:
    """Return a value that nothing uses? Gradients are always wanted, other values half of the time."""
    return b.values[name].spec.requires_grad or c.chance(50)


def _rebound(c: Chooser, b: Builder, args: tuple[Tree, ...]) -> tuple[str, ...]:
    """Draw whether the caller puts other tensors into the dicts and lists that it passed."""
    children = [t for tree in args if isinstance(tree, Container) and tree.kind in ("dict", "list") for t in tree.children]
    names = [t.name for t in children if isinstance(t, Name) and b.values[t.name].spec.floating]
    return tuple(dict.fromkeys(names)) if names and c.flag("container-rebound") else ()
