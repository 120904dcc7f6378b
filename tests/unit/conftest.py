"""What the unit tests share: one thread, drawn cases, and cases written by hand as the code that they print.

Also whether two runs left the same behind, and every way to use an operation.
"""

import contextlib
import dataclasses
import functools
import itertools
import re
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from msgspec.structs import replace
from torch import Tensor

from gradcheck_plus import support
from gradcheck_plus.case import (
    Case,
    Container,
    Cotangent,
    Environment,
    Name,
    Parameter,
    Primal,
    Program,
    Scalar,
    Segment,
    Spec,
    Statement,
    Tree,
    Value,
)
from gradcheck_plus.case.trees import names, walk
from gradcheck_plus.operations import CATALOGUE, Operation, Partner, render, results_of, seen_by
from gradcheck_plus.oracle import Evidence, Judgement, judge
from gradcheck_plus.record import Record, storage
from gradcheck_plus.source import laid_out
from gradcheck_plus.strategies import cases
from gradcheck_plus.subject import KINDS, Kind, Planned


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """The tensors are small: more threads would only wait for each other."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def drawn() -> Mapping[Kind, Sequence[Case]]:
    """Four hundred cases for each kind of subject, the same ones in every run; fewer that tell a checkpoint something."""
    told: tuple[Planned, ...] = ("saved", "layers", "pieces")
    return {k: _drawn(k) + [c for field in told if k == "checkpoint" for c in _drawn(k, field, 60)] for k in KINDS}


def _drawn(kind: Kind, planned: Planned = "", count: int = 400) -> list[Case]:
    found: list[Case] = []

    @seed(20)
    @settings(
        max_examples=count, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(case=cases(kind, planned=planned))
    def keep(case: Case) -> None:
        found.append(case)

    keep()
    return found


# cases written by hand --------------------------------------------------------------------------------------------------

_LINE = re.compile(
    r"(?P<results>[\w, ]+) = (?P<operation>\w+)\((?P<operands>[\w, ]+)(?:; (?P<attributes>[^)]+))?\)"
    r"(?: @ (?P<module>\w+))?(?P<flags>(?: frozen| no_grad)*)"
)
X0 = Primal("x0", Spec((2, 3), requires_grad=True))


@pytest.fixture(scope="session")
def write() -> Callable[..., Case]:
    """The function `written`: a case written as the lines of its program."""
    return written


def written(
    *segments: str | Sequence[str],
    primals: Sequence[Primal] = (X0,),
    parameters: Sequence[Parameter] = (),
    cotangents: Sequence[Cotangent] | None = None,
    changes: Mapping[int, Mapping[str, Any]] | None = None,
    dtype: str = "float32",
    **environment: Any,
) -> Case:
    """Return a case, each of its segments written as one line or as several.

    A line is ``h0 = dropout(x0; p=0.5) @ module frozen no_grad``; everything behind the operands may be left out. Segments are
    passed what they use and return what nothing of their own uses, or what a later one uses; `changes` says otherwise, by the
    number of the segment. Every output that requires grad and that no later segment uses receives a cotangent.
    """
    specs = {p.name: p.spec for p in primals}
    specs |= {p.name: Spec(p.shape, dtype, p.trainable and not p.buffer) for p in parameters}
    lines = [[line] if isinstance(line, str) else list(line) for line in segments]
    owned: set[str] = set()
    blocks = [[_statement(line, specs, owned, environment.get("autocast", "")) for line in block] for block in lines]
    own = {p.name for p in parameters}
    cut = [_segment(block, blocks[index + 1 :], own) for index, block in enumerate(blocks)]
    cut = [replace(segment, **(changes or {}).get(index, {})) for index, segment in enumerate(cut)]
    program = Program(tuple(cut), tuple(parameters), dtype)
    given = tuple(_cotangents(cut, specs)) if cotangents is None else tuple(cotangents)
    return Case(program, tuple(primals), given, Environment(**environment))


def _statement(line: str, specs: dict[str, Spec], owned: set[str], autocast: str) -> Statement:
    found = _LINE.fullmatch(line)
    assert found, line
    operation = CATALOGUE[found["operation"]]
    operands = tuple(name.strip() for name in found["operands"].split(","))
    seen = tuple(specs[name] for name in operands)
    attributes: dict[str, Scalar] = {k: next(iter(choices(seen[0]))) for k, choices in operation.attributes.items()}
    for pair in (found["attributes"] or "").split(", ") if found["attributes"] else ():
        name, _, value = pair.partition("=")
        attributes[name] = eval(value)
    module = (found["module"] or f"{operation.name}{len(owned)}") if operation.setup else ""
    frozen, no_grad = "frozen" in found["flags"], "no_grad" in found["flags"]
    grad = operation.differentiable and not no_grad
    grad = grad and ((operation.trainable and not frozen) or any(spec.requires_grad for spec in seen))
    results = []
    made = results_of(operation, seen, attributes, autocast=autocast)
    for name, (shape, result) in zip(found["results"].split(", "), made, strict=True):
        spec = Spec(tuple(shape), result)
        specs[name] = replace(spec, requires_grad=grad and spec.floating)
        results.append(Value(name, specs[name]))
    owner = module not in owned
    if module:
        owned.add(module)
    pairs = tuple(attributes.items())
    return Statement(operation.name, tuple(results), operands, seen, pairs, module, owner, frozen and owner, no_grad)


def _segment(block: Sequence[Statement], later: Sequence[Sequence[Statement]], own: set[str]) -> Segment:
    made = [r.name for s in block for r in s.results]
    used = {o for s in block for o in s.operands}
    wanted = {o for other in later for s in other for o in s.operands}
    passed = dict.fromkeys(o for s in block for o in s.operands if o not in own and o not in made)
    returned: list[Tree] = [Name(n) for n in made if n not in used or n in wanted]
    output = returned[0] if len(returned) == 1 else Container("tuple", tuple(returned))
    return Segment(tuple(block), tuple(map(Name, passed)), (), output)


def _cotangents(segments: Sequence[Segment], specs: Mapping[str, Spec]) -> list[Cotangent]:
    drawn: list[Cotangent] = []
    for index, segment in enumerate(segments):
        later = set(names(*(tree for s in segments[index + 1 :] for tree in s.inputs)))
        for path, leaf in walk(segment.output):
            if isinstance(leaf, Name) and specs[leaf.name].requires_grad and leaf.name not in later:
                drawn.append(Cotangent(index, path, 11 + len(drawn)))
    return drawn


# records ----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def same() -> Callable[[Record, Record], bool]:
    """The function `alike`: do two records differ in nothing?"""
    return alike


def alike(first: Record, second: Record) -> bool:
    """Do two records differ in nothing?"""
    said = judge(Evidence(first, second, exact=True, unit=2.0**-24))
    return isinstance(said, Judgement) and not said.mismatches and first.raised == second.raised


# uses of operations -----------------------------------------------------------------------------------------------------

SHAPES = (
    (2, 3), (3,), (), (2, 2, 4), (2, 3, 2, 2), (1, 1), (2, 4, 3), (2, 0), (4, 4), (1, 3), (2, 2, 2, 2), (2, 2), (1,), (0, 3),
    (0,), (0, 2, 4), (0, 4), (2, 0, 4), (2, 3, 0),
)  # fmt: skip
LAYOUTS = ("contiguous", "transposed", "strided", "offset", "expanded", "computed")
FLOATS = ("float32", "float64", "bfloat16", "float16")
OTHERS = (
    *(Spec(shape, dtype, True) for dtype in (*FLOATS, "float") for shape in SHAPES),
    *(Spec(shape, "bool") for shape in (*SHAPES, (2, 3, 5))),
    *(Spec((n,), "int64") for n in (3, 1, 2)),
    Spec((), "python"),
)
CONSTANTS = (2, 0.5, None, True)
#: How many shapes are tried of a dtype other than float32, and under autocast.
FEW = 3
#: How many combinations of partners and attributes are tried of one shape; each shape goes on with the next ones.
MOST = 6


@pytest.fixture(scope="session")
def trials() -> Callable[..., Iterator["Trial"]]:
    """The function `uses_of`: every way to use an operation that is tried."""
    return uses_of


@dataclasses.dataclass(frozen=True)
class Trial:
    """One way to use an operation. `real` has the dtypes that the run gives to the operands; `parameters` is the program's."""

    operation: Operation
    specs: tuple[Spec, ...]
    real: tuple[str, ...]
    attributes: dict[str, Scalar]
    parameters: str
    autocast: str = ""
    layout: str = "contiguous"
    train: bool = True
    fill: str = "generic"

    def __repr__(self) -> str:
        operands = ", ".join(f"{dtype}{list(s.shape)}" for s, dtype in zip(self.specs, self.real, strict=True))
        said = [f"{self.operation.name}({operands})", *(f"{k}={v}" for k, v in self.attributes.items()), self.layout, self.fill]
        said += [f"autocast to {self.autocast}"] if self.autocast else []
        said += [f"{self.parameters} parameters"] if self.parameters != self.real[0] else []
        return " ".join([*said, "train" if self.train else "eval"])

    @property
    def declared(self) -> list[tuple[tuple[int, ...], str]]:
        """Shape and dtype of the results that the entry promises."""
        return list(results_of(self.operation, self.specs, self.attributes, autocast=self.autocast))

    @property
    def plain(self) -> bool:
        """Is it one of those that are looked at from every side?"""
        return self.real[0] == ("float64" if self.operation.name == "to_float32" else "float32") and not self.autocast

    def run(self, *, wants: Sequence[bool] = (), grad: bool = True) -> "Run":
        """Run it once."""
        return Run(self, wants=wants, grad=grad)

    def in_double_precision(self) -> "Trial":
        """Return what the run is that a low-precision one is measured by: the line names no other dtype."""
        line = re.sub(r"torch\.b?float(16|32)\b", "torch.float64", self.operation.line)
        real = tuple("float64" if s.floating else dtype for s, dtype in zip(self.specs, self.real, strict=True))
        operation = dataclasses.replace(self.operation, line=line)
        return dataclasses.replace(self, operation=operation, real=real, parameters="float64", autocast="")


def uses_of(operation: Operation, shapes: Sequence[tuple[int, ...]] = SHAPES) -> Iterator[Trial]:
    """Yield uses of an operation: of float32 with many partners, of other dtypes and under autocast a few."""
    turn, cast = itertools.count(), itertools.count()
    tried: Counter[tuple[str, ...]] = Counter()
    least = 3 if sum(operation.takes(Spec(shape), autocast=False) for shape in shapes) < 9 else 1
    modes = (True, False) if operation.setup or "training" in operation.line else (True,)
    for autocast, dtype, shape in itertools.product(("", "bfloat16", "float16"), (*FLOATS, "float"), shapes):
        if dtype not in (("float32", "float", autocast) if autocast else FLOATS) or (autocast and shape in SHAPES[9:]):
            continue
        a = Spec(shape, dtype, requires_grad=True)
        for parameters in dict.fromkeys(("float32", "float32" if autocast else dtype)):
            if not operation.takes(a, autocast=bool(autocast), parameters=parameters):
                continue
            full = dtype == parameters == "float32" and not autocast
            if not full and tried[autocast, dtype, parameters] == FEW:
                continue
            uses = list(combinations(operation, a, parameters, autocast=autocast))
            tried[autocast, dtype, parameters] += bool(uses)
            for train in modes if uses else ():
                for _ in range(min(max(len(uses), least), MOST) if full else 1):
                    n = next(turn)
                    specs, attributes = uses[n % len(uses)]
                    # A dtype that only the run decides is float32 or what autocast casts to.
                    real = tuple(("float32", autocast)[next(cast) % 2] if s.dtype == "float" else s.dtype for s in specs)
                    yield Trial(operation, specs, real, attributes, parameters, autocast, LAYOUTS[n % len(LAYOUTS)], train)


def combinations(
    operation: Operation, a: Spec, parameters: str, *, autocast: str
) -> Iterator[tuple[tuple[Spec, ...], dict[str, Scalar]]]:
    """Yield partners and attributes for a first operand."""
    see = functools.partial(seen_by, operation, autocast=bool(autocast))
    choices = [[(name, value) for value in choose(see(a))] for name, choose in operation.attributes.items()]
    dtypes = ("float32", "float64", "float", autocast) if autocast else FLOATS
    values = [s for s in OTHERS if not s.floating or s.dtype in dtypes]
    partners = [list(candidates(partner, see, a, parameters, values)) for partner in operation.partners]
    for others, attributes in itertools.product(itertools.product(*partners), itertools.product(*choices)):
        yield (a, *others), dict(attributes)


def candidates(partner: Partner, see: Callable[[Spec], Spec], a: Spec, parameters: str, values: list[Spec]) -> Iterator[Spec]:
    """Yield a new parameter, and a few values, that may be the partner."""
    fresh = Spec(partner.fresh(see(a)), parameters, requires_grad=True) if partner.fresh else None
    if fresh and partner.fits(see(a), see(fresh)):
        yield fresh
    fitting = [b for b in values if partner.fits(see(a), see(b))]
    yield from fitting[:: len(fitting) // 3 + 1]


class Run:
    """One forward of a trial, on operands and a module of its own.

    `wants` says which operands require grad and, at its end, whether the parameters of the module do.
    """

    def __init__(self, trial: Trial, *, wants: Sequence[bool] = (), grad: bool = True) -> None:
        self.trial, operation = trial, trial.operation
        wants = wants or [s.floating for s in trial.specs] + [True]
        self.leaves = [self._leaf(n, spec, want=wants[n]) for n, spec in enumerate(trial.specs)]
        computed = operation.in_place or trial.layout == "computed"
        self.operands = [self.leaves[0] * 1 if computed else self.leaves[0], *self.leaves[1:]]
        self.module: Any = None
        torch.default_generator.manual_seed(2)
        if operation.setup:
            self.module = evaluated(render(operation.setup, "abcd", trial.specs, trial.attributes))
            self.module.to(getattr(torch, trial.parameters)).train(trial.train).requires_grad_(wants[-1])
            evaluated("fill(module)", {"module": self.module})
        before, state = self._versions(), torch.default_generator.manual_seed(3).get_state()
        with torch.set_grad_enabled(grad), autocast(trial.autocast):
            self.value = self._forward()
        self.draws = not torch.equal(state, torch.get_rng_state())
        self.changed = [a != b for a, b in zip(before, self._versions(), strict=True)]
        self.results: list[Tensor] = [self.value] if len(trial.declared) == 1 else list(self.value)
        self.differentiable = [r for r in self.results if r.requires_grad]
        parameters = list(self.module.parameters()) if self.module else []
        self.wanting = [t for t in (*self.leaves, *parameters) if isinstance(t, Tensor) and t.requires_grad]

    def _leaf(self, position: int, spec: Spec, *, want: bool) -> Any:
        trial = self.trial
        if spec.dtype == "python":
            return CONSTANTS[len(trial.layout) % len(CONSTANTS)]
        layout = trial.layout.replace("computed", "contiguous") if spec.floating else "contiguous"
        return evaluated(laid_out(spec.shape, 5 * position + 1, trial.real[position], trial.fill, layout)).requires_grad_(want)

    def _forward(self) -> Any:
        trial, names = self.trial, "abcd"[: len(self.operands)]
        line = render(trial.operation.line, names, trial.specs, trial.attributes, "module")
        scope = {"module": self.module, "self": types.SimpleNamespace(training=trial.train)}
        return evaluated(line, scope | dict(zip(names, self.operands, strict=True)))

    def _versions(self) -> list[int]:
        return [o._version for o in self.operands if isinstance(o, Tensor)]

    @property
    def places(self) -> set[int]:
        """The memory of the operands."""
        return {storage(o) for o in self.operands if isinstance(o, Tensor)} - {0}

    def gradients(self, *results: Tensor) -> list[Tensor | None]:
        """Return what generic cotangents on some results send to whatever requires grad."""
        if not results:
            return []
        cotangents = [evaluated(f"values({tuple(r.shape)}, {41 + n}, {r.dtype})") for n, r in enumerate(results)]
        return list(torch.autograd.grad(results, self.wanting, cotangents, retain_graph=True, allow_unused=True))


def evaluated(text: str, scope: dict[str, Any] | None = None) -> Any:
    """Return the value of an expression, in the vocabulary of printed programs."""
    return eval(compiled(text), {**vars(support), **(scope or {})})


@functools.cache
def compiled(text: str) -> types.CodeType:
    return compile(text, "<expression>", "eval")


def autocast(dtype: str) -> contextlib.AbstractContextManager[Any]:
    return torch.autocast("cpu", dtype=getattr(torch, dtype)) if dtype else contextlib.nullcontext()
