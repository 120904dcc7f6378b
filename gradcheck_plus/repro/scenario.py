"""The body of a repro's ``run``: the schedule of a case written out, line by line, as the executor runs it.

Every variable has the name that leaf paths use, so that a path such as ``params['segment0.linear0.weight'].grad`` is code.
"""

import math
import re
from collections.abc import Iterator

import msgspec

from gradcheck_plus.case import Case, Constant, Container, ModuleProgram, Name, Segment, Tree
from gradcheck_plus.case.program import Shape
from gradcheck_plus.case.trees import names, steps, walk
from gradcheck_plus.operations.device import WORKSPACE, suits_cudnn
from gradcheck_plus.source import CALL, SEED, cotangent_source, expression, input_lines, primal_names, program_source, unpacking
from gradcheck_plus.subject import STAGES, Kind

#: For each output leaf (segment, path): its shape and dtype as the reference left it.
Outputs = dict[tuple[int, str], tuple[Shape, str]]


def scenario(case: Case, kind: Kind, outputs: Outputs, device: str = "cpu") -> list[str]:
    """Return the lines of ``run``, without the one that returns what is compared.

    Args:
        case: the case.
        kind: how the implementation is called.
        outputs: shape and dtype of every output that requires grad, as plain autograd leaves them.
        device: where tensors live.
    """
    e, seeded = case.environment, f"torch.manual_seed({SEED})"
    lines = [*([seeded] if _own(case) or _drawn(case) else ()), *_model(case, kind, device), seeded]
    lines += _wrapping(case) if kind == "wrapper" else []
    body: list[str] = []
    passed: list[int] = []
    forwards, repetitions = 0, dict.fromkeys(range(e.forwards), 0)
    for position, step in enumerate(e.schedule):
        if step == "F":
            body += _inputs(case, forwards)
            body += _under_autocast(case, device, list(_forward(case, kind, forwards)))
            body += [f"draw({e.draws_after})"] if e.draws_after else []
            body += _changed_parameter() if e.changes_parameter else []
            forwards += 1
        else:
            retain = step in e.schedule[position + 1 :]
            body += _backward(case, kind, int(step), repetitions[int(step)], outputs, retain=retain)
            passed.append(int(step))
            body += _second_passes(case, passed) if kind == "split-backward" else []
            repetitions[int(step)] += 1
    return [*lines, *body]


def settings(case: Case, device: str, *, poison: bool) -> Iterator[str]:
    """Yield the lines that have torch compute the same bits every time, as the executor does.

    A program for a CPU needs them only to see memory that was never written, with `poison`.
    """
    if poison:
        yield "torch.use_deterministic_algorithms(True, warn_only=True)  # memory that was never written reads as NaN"
    elif device != "cpu":
        yield "torch.use_deterministic_algorithms(True, warn_only=True)"
    if device != "cpu":
        name, value = WORKSPACE
        yield f"os.environ.setdefault({name!r}, {value!r})"
        yield "torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False"
        if not suits_cudnn(case):
            yield "torch.backends.cudnn.enabled = False  # it has no backward of recurrent layers in eval mode"


def _own(case: Case) -> bool:
    """Is it a user's own module, which makes its parameters itself?"""
    return isinstance(case.program, ModuleProgram)


def _drawn(case: Case) -> bool:
    """Does a layer draw what it starts with, and that no value is put in the place of?"""
    return "spectral_norm" in program_source(case.program)


def _model(case: Case, kind: Kind, device: str) -> Iterator[str]:
    e, program = case.environment, case.program
    moved = [repr(device)] if device != "cpu" else []
    moved += [f"torch.{program.dtype}"] if program.dtype != "float32" and not _own(case) else []
    yield f"model = Model().to({', '.join(moved)})" if moved else "model = Model()"
    if not _own(case):
        yield "fill(model)"
    if not e.train and kind != "wrapper":
        yield "model.eval()"
    yield "params = dict(model.named_parameters())"
    yield "buffers = dict(model.named_buffers())"
    if kind == "wrapper":
        yield "modules = dict(model.named_modules())"
    if e.existing_grad:
        yield "for i, p in enumerate(p for p in params.values() if p.requires_grad):"
        yield "    p.grad = values(p.shape, i + 70, p.dtype)"
    yield from _hooks(case)


def _wrapping(case: Case) -> Iterator[str]:
    """Wrap what the plan names, then set the mode, which must reach what is inside."""
    for path in case.wrapped:
        place = re.sub(r"\.(\d+)\b", r"[\1]", f"model.{path}")
        yield f"{place} = wrap({place})"
    if not case.environment.train:
        yield "model.eval()"


def _hooks(case: Case) -> Iterator[str]:
    hooks = case.environment.hooks
    if hooks:
        yield "fired = collections.Counter()"
    if {"parameter", "post-accumulate"} & set(hooks):
        yield "for name, p in params.items():"
        yield "    if p.requires_grad:"
    if "parameter" in hooks:
        yield '        n = f"params[{name!r}].register_hook"'
        yield "        p.register_hook(lambda g, n=n: fired.update([n]) or (None if g is None else g * 0.5))"
    if "post-accumulate" in hooks:
        yield '        n = f"params[{name!r}].register_post_accumulate_grad_hook"'
        halved = "setattr(p, 'grad', p.grad * 0.5)"
        yield f"        p.register_post_accumulate_grad_hook(lambda p, n=n: fired.update([n]) or {halved})"
    if {"forward", "backward"} & set(hooks):
        yield "for name, m in model.named_children():"
    if "forward" in hooks:
        yield '    m.register_forward_hook(lambda *_, n=f"{name}.register_forward_hook": fired.update([n]))'
    if "backward" in hooks:
        yield '    m.register_full_backward_hook(lambda *_, n=f"{name}.register_full_backward_hook": fired.update([n]))'


def _suffixed(case: Case, forward: int) -> Case:
    """Return the case with the primals named as those of one forward."""
    if not forward:
        return case

    def name(text: str) -> str:
        return f"{text}_{forward}" if text else ""

    primals = tuple(
        msgspec.structs.replace(p, name=name(p.name), alias=name(p.alias), share=name(p.share)) for p in case.primals
    )
    return msgspec.structs.replace(case, primals=primals)


def _inputs(case: Case, forward: int) -> Iterator[str]:
    e = case.environment
    named = _suffixed(case, forward)
    if _own(case):
        yield "args, kwargs = sample_call(sample_inputs)"
    yield from input_lines(named, forward)
    for before, p in zip(case.primals, named.primals, strict=True):
        if forward and before.name in case.reused:
            yield "with torch.no_grad():"
            yield f"    {p.name} = {before.name}.copy_({p.name})"
        elif forward and before.alias in case.reused:
            yield f"{p.name} = {p.alias}"
        elif p.spec.requires_grad and p.tensor and not p.alias:
            leaf = p.name if p.leaf or p.share else f"root_{p.name}"
            if e.existing_grad:
                yield f"{leaf}.grad = values({leaf}.shape, 90, {leaf}.dtype)"
            if "input" in e.hooks:
                yield f"{p.name}.register_hook(lambda g: fired.update(['{leaf}.register_hook']))"


def _under_autocast(case: Case, device: str, lines: list[str]) -> list[str]:
    if not case.environment.autocast:
        return lines
    kind = device.partition(":")[0]
    return [f'with torch.autocast("{kind}", dtype=torch.{case.environment.autocast}):', *(f"    {line}" for line in lines)]


def _changed_parameter() -> list[str]:
    return ["with torch.no_grad():", "    next(p for p in params.values() if p.requires_grad).mul_(1.5)"]


def output_name(forward: int) -> str:
    """Return the variable that holds what a forward returned."""
    return f"outputs_{forward}" if forward else "outputs"


def _forward(case: Case, kind: Kind, number: int) -> Iterator[str]:
    if kind in STAGES:
        yield from _stages(case, number)
        return
    passed = [_at(name, number) for name in primal_names(case.program)]
    call = [CALL] if kind == "checkpoint" else []
    yield f"{output_name(number)} = model({', '.join([*call, *passed])})"


def _at(name: str, number: int) -> str:
    return f"{name}_{number}" if number else name


def place(case: Case, forward: int, segment: int) -> str:
    """Return how code reaches the output of a segment."""
    return output_name(forward) if len(case.program.segments) == 1 else f"{output_name(forward)}[{segment}]"


def _backward(case: Case, kind: Kind, number: int, repetition: int, outputs: Outputs, *, retain: bool) -> Iterator[str]:
    if kind in STAGES:
        yield from _stage_backwards(case, kind, number, repetition, outputs)
        return
    drawn = [(c, outputs[c.segment, c.path]) for c in case.cotangents if (c.segment, c.path) in outputs]
    if drawn:
        received = [place(case, number, c.segment) + c.path for c, _ in drawn]
        cotangents = [cotangent_source(c, shape, dtype, repetition) for c, (shape, dtype) in drawn]
        more = ", retain_graph=True" if retain else ""
        yield f"torch.autograd.backward([{', '.join(received)}], [{', '.join(cotangents)}]{more})"


# stages -----------------------------------------------------------------------------------------------------------------


def _stages(case: Case, number: int) -> Iterator[str]:
    """Write out the stages of one forward: each on leaves of its own, which end the graph."""
    program = case.program
    for index, segment in enumerate(program.segments):
        if segment.draws:
            yield f"draw({segment.draws})"
        wanted = list(dict.fromkeys(names(*segment.inputs)))
        for name in wanted:
            yield from _boundary(case, index, name, number)
        own = {name: boundary(index, name, number) for name in wanted}
        call = ", ".join(_passed(segment, own))
        yield f"{stage_output(index, number)} = model.segment{index}({call})"
        if "output" in case.environment.hooks:
            returned = (path for path, leaf in walk(segment.output) if isinstance(leaf, Name))
            yield f"halved({', '.join(stage_output(index, number) + path for path in returned)})"
        for line in unpacking(program, index):
            left, _, path = line.partition(f" = out{index}")
            yield f"{_at(left, number)} = {stage_output(index, number)}{path}"
    outputs = ", ".join(stage_output(index, number) for index in range(len(program.segments)))
    yield f"{output_name(number)} = {outputs}"


def boundary(stage: int, name: str, number: int) -> str:
    """Return the variable of a stage's own leaf."""
    return _at(f"stage{stage}_{name}", number)


def stage_output(stage: int, number: int) -> str:
    """Return the variable that holds what a stage returned."""
    return _at(f"out{stage}", number)


def _boundary(case: Case, stage: int, name: str, number: int) -> Iterator[str]:
    value, leaf = _at(name, number), boundary(stage, name, number)
    primal = next((p for p in case.primals if p.name == name), None)
    if primal is not None and not primal.tensor:
        yield f"{leaf} = {value}"
    elif not case.environment.reuses_inputs:
        yield f"{leaf} = {value}.detach().requires_grad_({value}.requires_grad)"
    elif number:
        first = boundary(stage, name, 0)
        yield "with torch.no_grad():"
        fresh = f"{value}.detach().clone().requires_grad_({value}.requires_grad)"
        yield f"    {leaf} = {first}.copy_({value}) if {first}.is_contiguous() else {fresh}"
    else:
        yield f"{leaf} = {value}.detach().clone().requires_grad_({value}.requires_grad)"


def _passed(segment: Segment, own: dict[str, str]) -> list[str]:
    return [
        *(expression(renamed(tree, own)) for tree in segment.args),
        *(f"{key}={expression(renamed(tree, own))}" for key, tree in segment.kwargs),
    ]


def renamed(tree: Tree, own: dict[str, str]) -> Tree:
    """Return a tree with other names for its values."""
    if isinstance(tree, Container):
        return msgspec.structs.replace(tree, children=tuple(renamed(child, own) for child in tree.children))
    return Name(own.get(tree.name, tree.name)) if isinstance(tree, Name) else tree


def _stage_backwards(case: Case, kind: Kind, number: int, repetition: int, outputs: Outputs) -> Iterator[str]:
    """Write out the backwards of one forward, the last stage first; gradients are handed on by name."""
    segments = case.program.segments
    arriving: dict[str, list[str]] = {}
    for index in reversed(range(len(segments))):
        segment = segments[index]
        drawn = {c.path: c for c in case.cotangents if c.segment == index}
        made = {r.name for s in segment.statements for r in s.results}
        received: dict[str, str] = {}
        for path, leaf in walk(segment.output):
            output = f"{stage_output(index, number)}{path}"
            parts = []
            if path in drawn and (index, path) in outputs:
                parts.append(cotangent_source(drawn[path], *outputs[index, path], repetition))
            if isinstance(leaf, Name) and leaf.name in made:
                parts += arriving.pop(leaf.name, [])
            received[path] = _received(case, leaf, output, parts, outputs.get((index, path)))
        wanted = list(dict.fromkeys(names(*segment.inputs)))
        result = _at(f"grads{index}", number)
        for position, name in enumerate(wanted):
            arriving.setdefault(name, []).append(f"{result}[{position}]")
        if kind == "split-backward":
            yield from _first_pass(case, index, number, received)
            continue
        grads = shaped(segment.output, received, reverse=case.environment.reversed_keys)
        bare = not isinstance(segment.output, Container) or segment.output.kind == "dataclass"
        own = ", ".join(boundary(index, name, number) for name in wanted)
        out = stage_output(index, number)
        yield f"{result} = stage_backward({f'({out},)' if bare else out}, {f'({grads},)' if bare else grads}, [{own}])"


def _first_pass(case: Case, index: int, number: int, received: dict[str, str]) -> Iterator[str]:
    """Write out the first pass of one stage, and the second one if it comes at once."""
    segment = case.program.segments[index]
    python = {p.name for p in case.primals if not p.tensor}
    paths = [path for path, leaf in walk(segment.output) if isinstance(leaf, Name) and leaf.name not in python]
    outputs = ", ".join(f"{stage_output(index, number)}{path}" for path in paths)
    grads = ", ".join(received[path] for path in paths)
    own = [boundary(index, name, number) for name in dict.fromkeys(names(*segment.inputs))]
    own += own[:1] if case.environment.repeated_input else []
    results = f"{_at(f'grads{index}', number)}, {_at(f'groups{index}', number)}"
    yield f"{results} = backward_input([{outputs}], [{grads}], [{', '.join(own)}], {_listed(case, index)})"
    if not case.environment.weights:
        yield _second_pass(case, index, number)


def _second_pass(case: Case, index: int, number: int) -> str:
    return f"backward_weight({_listed(case, index)}, {_at(f'groups{index}', number)})"


def _listed(case: Case, index: int) -> str:
    parameters = f"model.segment{index}.parameters()"
    return f"reversed(list({parameters}))" if case.environment.reversed_parameters else parameters


def _second_passes(case: Case, passed: list[int]) -> list[str]:
    """Write out the second passes that wait when the first ones of these forwards have run, the last of them just now."""
    e = case.environment
    if not e.weights or (e.weights != "forward" and len(passed) < e.backwards):
        return []
    last = len(case.program.segments)
    every = [(i, n) for n in (passed[-1:] if e.weights == "forward" else passed) for i in reversed(range(last))]
    return [_second_pass(case, index, number) for index, number in e.second_passes(every)]


def _received(case: Case, leaf: Name | Constant, output: str, parts: list[str], known: tuple[Shape, str] | None) -> str:
    """Return what an output receives: the sum of what is drawn for it and what arrives from later stages."""
    if isinstance(leaf, Constant) or known is None:
        return "None"
    zero = "None" if case.environment.none_for_zero and math.prod(known[0]) != 1 else f"torch.zeros_like({output})"
    if not parts:
        return zero
    return parts[0] if len(parts) == 1 and not parts[0].startswith("grads") else f"total([{', '.join(parts)}], {zero})"


def shaped(tree: Tree, received: dict[str, str], path: str = "", *, reverse: bool = False) -> str:
    """Return cotangents in the structure of an output, as code."""
    if not isinstance(tree, Container):
        return received[path]
    children = [
        shaped(child, received, path + step, reverse=reverse) for child, step in zip(tree.children, steps(tree), strict=True)
    ]
    if tree.kind == "dict":
        pairs = [f"{key!r}: {child}" for key, child in zip(tree.keys, children, strict=True)]
        return "{" + ", ".join(reversed(pairs) if reverse else pairs) + "}"
    return expression(msgspec.structs.replace(tree, children=tuple(map(Name, children))))
