"""What can be read off a case before anything runs: the vocabulary that traits are written in."""

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from itertools import groupby
from operator import itemgetter

from gradcheck_plus.case import Case, Container, ModuleProgram, Name, Primal, Segment, Spec, Statement
from gradcheck_plus.case.trees import containers, names, walk
from gradcheck_plus.operations import CATALOGUE, Operation


class Facts:
    """Facts of one case, each computed when it is first asked for.

    `regions` are the segments that the subject calls; what is said of inputs, outputs and operations is said of them.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.program, self.environment = case.program, case.environment
        self.primals: dict[str, Primal] = {p.name: p for p in case.primals}
        self.regions: list[Segment] = [s for s in case.program.segments if s.region]

    # values ---------------------------------------------------------------------------------------------------------

    @cached_property
    def specs(self) -> dict[str, Spec]:
        """What is known of every named value."""
        specs = {name: p.spec for name, p in self.primals.items()}
        if isinstance(self.program, ModuleProgram):
            specs |= {value.name: value.spec for value in self.program.results}
        return specs | {r.name: r.spec for s in self.program.statements for r in s.results}

    def tensor(self, name: str) -> bool:
        """Is the value a tensor?"""
        return self.specs[name].dtype != "python"

    def differentiable(self, name: str) -> bool:
        """Does the value require grad?"""
        return self.specs[name].requires_grad

    @cached_property
    def passed(self) -> list[Primal]:
        """The primals that reach a region."""
        given = {name for s in self.regions for name in names(*s.inputs)}
        return [p for name, p in self.primals.items() if name in given]

    @cached_property
    def floating(self) -> list[Primal]:
        """Those of them that could require grad."""
        return [p for p in self.passed if p.spec.floating]

    def layout(self, *layouts: str) -> bool:
        """Does a primal lie in memory in one of these ways?"""
        return any(p.layout in layouts and p.spec.rank for p in self.floating)

    # statements -----------------------------------------------------------------------------------------------------

    @cached_property
    def operations(self) -> list[tuple[Statement, Operation]]:
        """The statements inside regions, with their operations."""
        return [(s, CATALOGUE[s.operation]) for segment in self.regions for s in segment.statements]

    @cached_property
    def operation_traits(self) -> frozenset[str]:
        """The traits that operations inside regions bring."""
        if isinstance(self.program, ModuleProgram):
            return frozenset(self.program.features)
        return frozenset(trait for _, operation in self.operations for trait in operation.traits)

    @cached_property
    def makers(self) -> dict[str, Operation]:
        """The operation that made each value."""
        return {r.name: CATALOGUE[s.operation] for s in self.program.statements for r in s.results}

    @cached_property
    def homes(self) -> dict[str, list[int]]:
        """For every parameter and module, the segment of each of its uses."""
        own = {p.name for p in self.program.parameters}
        uses: dict[str, list[int]] = {name: [] for name in own}
        for index, segment in enumerate(self.program.segments):
            for statement in segment.statements:
                for name in (*(o for o in statement.operands if o in own), *([statement.module] if statement.module else [])):
                    uses.setdefault(name, []).append(index)
        return uses

    @cached_property
    def buffers(self) -> set[str]:
        """The names of the buffers that segments use directly."""
        return {p.name for p in self.program.parameters if p.buffer}

    @cached_property
    def operand_uses(self) -> Counter[str]:
        """How often each value is an operand."""
        return Counter(o for s in self.program.statements for o in s.operands)

    # modules that are wrapped inside regions ------------------------------------------------------------------------

    def _wrapped(self, index: int, number: int) -> bool:
        """Does a statement of a segment call a module that is wrapped itself?"""
        segment = self.program.segments[index]
        name = number if segment.form == "sequential" else segment.statements[number].module
        return segment.region and f"segment{index}.{name}" in self.case.plan.inner

    @cached_property
    def wrapped_calls(self) -> list[Statement]:
        """The statements that call a module that is wrapped itself."""
        segments = enumerate(self.program.segments)
        return [s for i, segment in segments for n, s in enumerate(segment.statements) if self._wrapped(i, n)]

    @cached_property
    def pieces(self) -> list[tuple[object, Segment]]:
        """The segments, cut once more around the modules that are wrapped inside, each with the side of a cut that it is on."""
        return [piece for index in range(len(self.program.segments)) for piece in self._pieces(index)]

    def _pieces(self, index: int) -> Iterator[tuple[object, Segment]]:
        segment = self.program.segments[index]
        alone = [number if self._wrapped(index, number) else -1 for number in range(len(segment.statements))]
        if len(set(alone)) < 2:
            yield index, segment
            return
        for number, pairs in groupby(zip(alone, segment.statements, strict=True), itemgetter(0)):
            piece = self._piece(tuple(s for _, s in pairs), segment, wrapped=number >= 0)
            yield (index if number < 0 else (index, number)), piece

    def _piece(self, statements: tuple[Statement, ...], whole: Segment, *, wrapped: bool) -> Segment:
        """Return some statements of a segment as one of its own: it returns what is used or returned outside."""
        made = {r.name for s in statements for r in s.results}
        outside = {o for s in whole.statements if s not in statements for o in s.operands} | set(names(whole.output))
        inputs = dict.fromkeys(o for s in statements for o in s.operands if o not in made and o in self.specs)
        crossing = tuple(Name(name) for name in sorted(made & outside))
        return Segment(statements, tuple(map(Name, inputs)), (), Container("tuple", crossing), region=wrapped)

    # inputs and outputs ---------------------------------------------------------------------------------------------

    def input_container(self, *kinds: str) -> bool:
        """Does an argument hold a container of one of these kinds, or any at all?"""
        return any(not kinds or c.kind in kinds for s in self.regions for t in s.inputs for c in containers(t))

    def output_container(self, *kinds: str) -> bool:
        """Does an output hold a container of one of these kinds?"""
        return any(c.kind in kinds for s in self.regions for c in containers(s.output))

    @property
    def nested_output(self) -> bool:
        """Is an output more than a tensor or a flat tuple of leaves?"""
        for segment in self.regions:
            inner = [c for c in containers(segment.output) if c is not segment.output]
            if inner or (isinstance(segment.output, Container) and segment.output.kind != "tuple"):
                return True
        return False

    @property
    def mixed_output(self) -> bool:
        """Does an output hold a differentiable tensor bare and another one in an inner container?"""
        for segment in self.regions:
            if not isinstance(segment.output, Container):
                continue
            bare = any(isinstance(c, Name) and self.differentiable(c.name) for c in segment.output.children)
            inner = [n for c in segment.output.children if isinstance(c, Container) for n in names(c)]
            if bare and any(map(self.differentiable, inner)):
                return True
        return False

    @cached_property
    def outputs(self) -> list[tuple[Segment, str]]:
        """The values that regions return, each with its region, repeats included."""
        return [(s, name) for s in self.regions for name in names(s.output)]

    @staticmethod
    def made(segment: Segment) -> set[str]:
        """The values that a segment makes."""
        return {r.name for s in segment.statements for r in s.results}

    @cached_property
    def views(self) -> set[str]:
        """The results that are views, or may be. What dropout returns may be one in eval mode alone."""
        return {r.name for s, operation in self.operations if self._makes_views(s, operation) for r in s.results}

    def _makes_views(self, statement: Statement, operation: Operation) -> bool:
        copies = self.environment.train and "dropout" in operation.traits
        return (operation.view and not copies) or operation.inner_view(statement.specs[0])

    @property
    def passthrough(self) -> bool:
        """Does a region return one of its inputs?"""
        return any(name in names(*s.inputs) for s, name in self.outputs)

    @property
    def unused_input(self) -> bool:
        """Is a tensor passed to a region on which nothing depends that the region returns or changes?"""
        return any(self.tensor(n) and n not in self.live(s) for s in self.regions if s.statements for n in names(*s.inputs))

    @staticmethod
    def live(segment: Segment) -> set[str]:
        """The values that what a segment returns, or changes in place, depends on."""
        live = set(names(segment.output))
        for statement in reversed(segment.statements):
            if CATALOGUE[statement.operation].in_place or any(r.name in live for r in statement.results):
                live |= {*statement.operands, *(r.name for r in statement.results)}
        return live

    @cached_property
    def crossings(self) -> list[tuple[str, int, int]]:
        """(value, where it is made, where it is used) for every use outside the segment that made it."""
        found = []
        made: dict[str, int] = dict.fromkeys(self.primals, -1)
        for index, segment in enumerate(self.program.segments):
            found += [(name, made[name], index) for name in dict.fromkeys(names(*segment.inputs))]
            made |= dict.fromkeys(self.made(segment), index)
        return found

    @property
    def outer_use(self) -> bool:
        """Is an output of a region used both by a later segment and by the loss?"""
        return any(made >= 0 and name in self.cotangent_names for name, made, _ in self.crossings)

    # gradients ------------------------------------------------------------------------------------------------------

    @cached_property
    def cotangent_names(self) -> list[str]:
        """The values that receive a cotangent, repeats included."""
        found = []
        leaves = [dict(walk(s.output)) for s in self.program.segments]
        for c in self.case.cotangents:
            leaf = leaves[c.segment].get(c.path)
            if isinstance(leaf, Name):
                found.append(leaf.name)
        return found

    @cached_property
    def reached(self) -> set[str]:
        """The values and parameters that a gradient comes back to."""
        reached = {name for name in self.cotangent_names if self.differentiable(name)}
        for statement in reversed(self.program.statements):
            if any(r.name in reached for r in statement.results):
                pairs = zip(statement.operands, statement.specs, strict=True)
                reached |= {name for name, spec in pairs if spec.requires_grad}
        return reached

    @property
    def several_gradients(self) -> bool:
        """Does a custom Function have several results that receive a gradient?"""
        own = [s for s, operation in self.operations if "custom-function" in operation.traits]
        return any(sum(r.name in self.reached for r in s.results) > 1 for s in own)

    @property
    def unreached_output(self) -> bool:
        """Does an output of a region require grad but receive none?"""
        if self.environment.none_for_zero and any(map(self._handed_none, range(len(self.program.segments)))):
            return True
        return any(self.differentiable(name) and name not in self.reached for _, name in self.outputs)

    def _handed_none(self, index: int) -> bool:
        """Is a stage handed `None` for an output that requires grad? A value that is returned twice receives once."""
        segment = self.program.segments[index]
        drawn = {c.path for c in self.case.cotangents if c.segment == index}
        made = self.made(segment)
        seen: set[str] = set()
        for path, leaf in walk(segment.output):
            if not isinstance(leaf, Name):
                continue
            receives = leaf.name in made - seen and self._sent_back(leaf.name, index)
            if self.differentiable(leaf.name) and path not in drawn and not receives:
                return True
            seen.add(leaf.name)
        return False

    def _sent_back(self, name: str, index: int) -> bool:
        """Does a stage after this one send a gradient back for a value?"""
        for number, segment in enumerate(self.program.segments[index + 1 :], index + 1):
            used = any(name in s.operands and any(r.name in self.reached for r in s.results) for s in segment.statements)
            leaves = dict(walk(segment.output))
            if used or any(c.segment == number and leaves.get(c.path) == Name(name) for c in self.case.cotangents):
                return True
        return False

    @property
    def unreached_input(self) -> bool:
        """Is there an input that requires grad but receives none?"""
        return any(p.spec.requires_grad and p.name not in self.reached for p in self.passed)

    # regions as a reentrant checkpoint sees them --------------------------------------------------------------------

    @property
    def region_without_grad_input(self) -> bool:
        """Is there a region none of whose inputs requires grad?"""
        return any(not any(self.differentiable(n) for n in names(*s.inputs) if self.tensor(n)) for s in self.regions)

    @property
    def wrap_without_grad_input(self) -> bool:
        """Is there a module with parameters, wrapped inside a region, none of whose inputs requires grad?"""
        return any(
            CATALOGUE[s.operation].trainable and not any(s.specs[n].requires_grad for n in CATALOGUE[s.operation].given)
            for s in self.wrapped_calls
            if not s.no_grad
        )

    @property
    def wrapped_result_changed(self) -> bool:
        """Is what a module that is wrapped inside a region returns changed in place?"""
        returned = {r.name for s in self.wrapped_calls for r in s.results}
        return any(operation.in_place and s.operands[0] in returned for s, operation in self.operations)

    @property
    def region_without_grad_output(self) -> bool:
        """Is there a region none of whose outputs requires grad?"""
        return any(not any(map(self.differentiable, names(s.output))) for s in self.regions)

    # stages -----------------------------------------------------------------------------------------------------------

    @property
    def off_input_path(self) -> bool:
        """Does a stage return what requires grad and is made of none of its inputs that do?"""
        for segment in () if isinstance(self.program, ModuleProgram) else self.program.segments:
            along = {name for name in names(*segment.inputs) if self.differentiable(name)}
            for s in segment.statements:
                if along & set(s.operands):
                    along |= {r.name for r in s.results if r.spec.requires_grad}
            if any(self.differentiable(name) and name not in along for name in names(segment.output)):
                return True
        return False
