"""Programs and points as Python source: what a report shows is what ran.

`program_source` prints the modules, `input_lines` the primals, `cotangent_source` a cotangent. The executor compiles this
text and a repro prints it, so neither can say what the other does not do.
"""

from collections.abc import Iterator
from typing import Literal

from gradcheck_plus.case import (
    Case,
    Constant,
    Container,
    Cotangent,
    ModuleProgram,
    Name,
    Primal,
    Program,
    Segment,
    Statement,
    Tree,
)
from gradcheck_plus.case.program import Shape
from gradcheck_plus.case.trees import names, steps, walk
from gradcheck_plus.operations import CATALOGUE, render

#: The name under which the implementation under test is called in printed programs, by kind of subject.
CALL = "checkpoint"
#: What generators are seeded with before a case draws its first number.
SEED = 3
#: How ``Model.forward`` calls its regions: through the implementation under test, as they are, or there is no such method.
Calls = Literal["subject", "direct", "none"]
_INDENT = "    "


def expression(tree: Tree) -> str:
    """Return the code that builds a tree.

    Example:
        >>> from gradcheck_plus.case import Container
        >>> expression(Container("dict", (Container("tuple", (Name("h"),)), Constant(None)), ("a", "b")))
        "{'a': (h,), 'b': None}"
    """
    if isinstance(tree, Name):
        return tree.name
    if isinstance(tree, Constant):
        return repr(tree.value)
    children = [expression(child) for child in tree.children]
    match tree.kind:
        case "dict":
            return "{" + ", ".join(f"{key!r}: {child}" for key, child in zip(tree.keys, children, strict=True)) + "}"
        case "list":
            return f"[{', '.join(children)}]"
        case "tuple":
            return f"({', '.join(children)}{',' if len(children) == 1 else ''})"
        case "namedtuple":
            return f"Named{len(children)}({', '.join(children)})"
        case "dataclass":
            return f"Data{len(children)}({', '.join(children)})"


# modules ----------------------------------------------------------------------------------------------------------------


def program_source(program: Program | ModuleProgram, *, calls: Calls = "subject") -> str:
    """Return the source of a program: one class a segment, and ``Model``, which calls them in its ``forward`` if it has one."""
    if isinstance(program, ModuleProgram):
        return _model(program, ["self.segment0 = factory()"], calls)
    classes = [_segment(program, i) for i, s in enumerate(program.segments) if s.form != "sequential"]
    made = [_construction(i, segment) for i, segment in enumerate(program.segments)]
    return "\n\n".join([*classes, _model(program, [*made, *_ties(program)], calls)])


def _construction(index: int, segment: Segment) -> str:
    if segment.form != "sequential":
        return f"self.segment{index} = Segment{index}()"
    layers = ", ".join(_setup(statement) for statement in segment.statements)
    return f"self.segment{index} = nn.Sequential({layers})"


def _setup(statement: Statement) -> str:
    operation = CATALOGUE[statement.operation]
    return render(operation.setup, statement.operands, statement.specs, dict(statement.attributes))


def _segment(program: Program, index: int) -> str:
    segment = program.segments[index]
    signature, unpacking = _signature(segment)
    body = [*unpacking, *(line for s in segment.statements for line in _statement(program, s))]
    own = list(_attributes(program, index))
    return "\n".join(
        [
            f"class Segment{index}(nn.Module):",
            *([*_init(own), ""] if own else []),
            f"{_INDENT}def forward({signature}):",
            *(f"{_INDENT * 2}{line}" for line in [*body, f"return {expression(segment.output)}"]),
            "",
        ]
    )


def _init(lines: list[str]) -> list[str]:
    return [f"{_INDENT}def __init__(self):", *(f"{_INDENT * 2}{line}" for line in ["super().__init__()", *lines])]


def _attributes(program: Program, index: int) -> Iterator[str]:
    for statement in program.segments[index].statements:
        if statement.module and statement.owner:
            yield f"self.{statement.module} = {_setup(statement)}"
            if statement.frozen:
                yield f"self.{statement.module}.requires_grad_(False)"
    for number, p in enumerate(program.parameters):
        if p.segment != index:
            continue
        if p.buffer:
            yield f"self.register_buffer({p.name!r}, values({p.shape}, {number + 30}))"
        else:
            yield f"self.{p.name} = nn.Parameter(torch.empty({p.shape}){'' if p.trainable else ', requires_grad=False'})"


def _statement(program: Program, statement: Statement) -> list[str]:
    operation = CATALOGUE[statement.operation]
    own = {p.name for p in program.parameters}
    operands = [f"self.{o}" if o in own else o for o in statement.operands]
    right = render(operation.line, operands, statement.specs, dict(statement.attributes), f"self.{statement.module}")
    line = f"{', '.join(result.name for result in statement.results)} = {right}"
    return ["with torch.no_grad():", f"{_INDENT}{line}"] if statement.no_grad else [line]


def _signature(segment: Segment) -> tuple[str, list[str]]:
    """Return the parameter list of a segment's ``forward`` and the lines that unpack containers."""
    parameters, unpacking, seen = ["self"], [], {key for key, _ in segment.kwargs}

    def bind(parameter: str, tree: Tree) -> None:
        for path, leaf in walk(tree):
            if isinstance(leaf, Name) and leaf.name not in seen and parameter + path != leaf.name:
                seen.add(leaf.name)
                unpacking.append(f"{leaf.name} = {parameter}{path}")

    for position, tree in enumerate(segment.args):
        plain = isinstance(tree, Name) and tree.name not in seen
        parameters.append(tree.name if plain and isinstance(tree, Name) else f"arg{position}")
        seen.add(parameters[-1])
        bind(parameters[-1], tree)
    parameters += ["*"] if segment.kwargs else []
    for key, tree in segment.kwargs:
        parameters.append(key)
        bind(key, tree)
    return ", ".join(parameters), unpacking


def _ties(program: Program) -> Iterator[str]:
    """Yield the assignments that hand modules and parameters of one segment to another that uses them too."""
    homes = {p.name: p.segment for p in program.parameters}
    buffers = {p.name for p in program.parameters if p.buffer}
    done: set[tuple[str, int]] = set()
    for index, segment in enumerate(program.segments):
        for statement in segment.statements:
            if statement.module:
                homes.setdefault(statement.module, index)
            for name in (*statement.operands, statement.module):
                if homes.get(name, index) != index and (name, index) not in done:
                    done.add((name, index))
                    there = f"self.segment{homes[name]}.{name}"
                    if name in buffers:
                        yield f"self.segment{index}.register_buffer({name!r}, {there})"
                    else:
                        yield f"self.segment{index}.{name} = {there}"


def _model(program: Program | ModuleProgram, setup: list[str], calls: Calls) -> str:
    lines = ["class Model(nn.Module):", *_init(setup)]
    if calls != "none":
        direct = calls == "direct"
        body = [line for index in range(len(program.segments)) for line in _call(program, index, direct=direct)]
        outputs = ", ".join(f"out{index}" for index in range(len(program.segments)))
        lines += ["", f"{_INDENT}def forward({', '.join(['self', *([] if direct else [CALL]), *primal_names(program)])}):"]
        lines += [f"{_INDENT * 2}{line}" for line in [*body, f"return {outputs}"]]
    return "\n".join([*lines, ""])


def primal_names(program: Program | ModuleProgram) -> list[str]:
    """Return the names that come from outside, in the order of their first use."""
    made: set[str] = set()
    outside: dict[str, None] = {}
    for segment in program.segments:
        outside |= dict.fromkeys(name for name in names(*segment.inputs) if name not in made)
        made |= {result.name for statement in segment.statements for result in statement.results}
    return list(outside)


def arguments(segment: Segment) -> list[str]:
    """Return the arguments of a call of a segment, as code."""
    return [*map(expression, segment.args), *(f"{key}={expression(tree)}" for key, tree in segment.kwargs)]


def function(index: int, segment: Segment, owner: str = "self") -> str:
    """Return what is called for a segment, as code."""
    module = f"{owner}.segment{index}"
    return f"lambda *args, **kwargs: {module}(*args, **kwargs)" if segment.form == "function" else module


def _call(program: Program | ModuleProgram, index: int, *, direct: bool) -> Iterator[str]:
    segment = program.segments[index]
    passed = arguments(segment)
    if segment.draws:
        yield f"draw({segment.draws})"
    if segment.rebinds:
        for position, tree in enumerate(segment.args):
            if isinstance(tree, Container):
                yield f"arg{position} = {expression(tree)}"
                passed[position] = f"arg{position}"
    if segment.region and not direct:
        yield f"out{index} = {CALL}({', '.join([function(index, segment), *passed])})"
    else:
        yield f"out{index} = self.segment{index}({', '.join(passed)})"
    if segment.rebinds:
        yield from _rebinding(segment)
    yield from unpacking(program, index)


def _rebinding(segment: Segment) -> Iterator[str]:
    """Yield what a caller may do to its own containers after the call: other tensors in their places."""
    for position, tree in enumerate(segment.args):
        if isinstance(tree, Container) and tree.kind in ("dict", "list"):
            for step, child in zip(steps(tree), tree.children, strict=True):
                if isinstance(child, Name) and child.name in segment.rebinds:
                    yield f"arg{position}{step} = {child.name}.detach() + 1"


def unpacking(program: Program | ModuleProgram, index: int) -> Iterator[str]:
    """Yield the lines that name those results of a segment that later segments use."""
    segment = program.segments[index]
    made = {result.name for statement in segment.statements for result in statement.results}
    later = {name for s in program.segments[index + 1 :] for name in names(*s.inputs)}
    named: set[str] = set()
    for path, leaf in walk(segment.output):
        if isinstance(leaf, Name) and leaf.name in later & made and leaf.name not in named:
            named.add(leaf.name)
            yield f"{leaf.name} = out{index}{path}"


# points -----------------------------------------------------------------------------------------------------------------


def input_lines(case: Case, forward: int) -> list[str]:
    """Return the lines that make the primals of forward number `forward`; each forward has other values."""
    shared = {p.share for p in case.primals if p.share}
    return [line for p in case.primals for line in _primal(p, shifted(p.seed, forward), p.name in shared)]


def shifted(seed: int, number: int) -> int:
    """Return the seed of the same thing in repetition `number`."""
    return seed + 100 * number


def _primal(p: Primal, seed: int, shared: bool) -> Iterator[str]:  # noqa: FBT001
    flag = ".requires_grad_()" if p.spec.requires_grad else ""
    if p.alias:
        yield f"{p.name} = {p.alias}"
    elif p.sample:
        yield f"{p.name} = {p.sample}.detach().clone(){flag}" if p.tensor else f"{p.name} = {p.sample}"
    elif not p.tensor:
        yield f"{p.name} = {p.constant!r}"
    elif p.share:
        yield f"{p.name} = base_{p.share}[1]{flag}"
    elif shared:
        yield f"base_{p.name} = {_values((2, *p.spec.shape), seed, p.spec.dtype, p.fill)}"
        yield f"{p.name} = base_{p.name}[0]{flag}"
    elif p.layout in ("view", "expanded-view", "computed"):
        root, view = _non_leaf(p)
        yield f"root_{p.name} = {_values(root, seed, p.spec.dtype, p.fill)}{flag}"
        yield f"{p.name} = root_{p.name}{view}"
    else:
        yield f"{p.name} = {laid_out(p.spec.shape, seed, p.spec.dtype, p.fill, p.layout)}{flag}"


def _non_leaf(p: Primal) -> tuple[Shape, str]:
    if p.layout == "view":
        return (2, *p.spec.shape), "[1]"
    if p.layout == "expanded-view" and p.spec.shape:
        return (1, *p.spec.shape[1:]), f".expand({p.spec.shape})"
    return p.spec.shape, " * 1.5"


def _values(shape: Shape, seed: int, dtype: str, fill: str) -> str:
    if dtype in ("int64", "bool"):
        return f"integers({shape}, {seed}{'' if dtype == 'int64' else ', torch.bool'})"
    base = f"values({shape}, {seed}{'' if dtype == 'float32' else f', torch.{dtype}'})"
    match fill:
        case "integers":
            return f"{base}.round()"
        case "zero":
            return f"({base} * 0)"
        case "large":
            return f"({base} * 64)"
        case "tiny":
            return f"({base} / 1024)"
        case "one-hot":
            return base.replace("values", "one_hot", 1)
    return base


def laid_out(shape: Shape, seed: int, dtype: str, fill: str, layout: str) -> str:
    """Return the code of a tensor with a layout. Scalars have only one.

    Example:
        >>> laid_out((2, 3), 1, "float32", "generic", "transposed")
        'values((3, 2), 1).permute(1, 0)'
    """
    if not shape or layout == "contiguous":
        return _values(shape, seed, dtype, fill)
    match layout:
        case "transposed":
            order = ", ".join(map(str, reversed(range(len(shape)))))
            return f"{_values(shape[::-1], seed, dtype, fill)}.permute({order})"
        case "strided":
            return f"{_values((*shape[:-1], 2 * shape[-1]), seed, dtype, fill)}[..., ::2]"
        case "offset":
            return f"{_values((shape[0] + 1, *shape[1:]), seed, dtype, fill)}[1:]"
        case _:
            return f"{_values((1, *shape[1:]), seed, dtype, fill)}.expand({shape})"


def cotangent_source(cotangent: Cotangent, shape: Shape, dtype: str, repetition: int) -> str:
    """Return the code of a cotangent for an output of this shape and dtype, in backward number `repetition`."""
    return laid_out(shape, shifted(cotangent.seed, repetition), dtype, cotangent.fill, cotangent.layout)
