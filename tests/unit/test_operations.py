"""The laws of the operation catalogue: every entry does what it declares, on every operand that it takes.

Strategies build valid programs on these flags, and traits are read off them: a wrong one is a false alarm or a blind spot of
the whole tool. Each law is judged on what an operation was seen to do (`observed`), over shapes, dtypes, layouts, partners,
attributes, autocast, train and eval mode.
"""

import contextlib
import functools
import itertools
import re
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from gradcheck_plus import support
from gradcheck_plus.case import Scalar, Spec
from gradcheck_plus.execute import Tape
from gradcheck_plus.operations import CATALOGUE, Operation, Partner, render, results_of, seen_by
from gradcheck_plus.record import storage
from gradcheck_plus.source import laid_out

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
RANDOM_TRAITS = {"dropout", "random", "random-activation"}


# what is run ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
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


def trials(operation: Operation, shapes: Sequence[tuple[int, ...]] = SHAPES) -> Iterator[Trial]:
    """Yield uses of an operation: of float32 all combinations, of other dtypes and under autocast one for each shape."""
    turn, cast = itertools.count(), itertools.count()
    modes = (True, False) if operation.setup or "training" in operation.line else (True,)
    for autocast, dtype, shape in itertools.product(("", "bfloat16", "float16"), (*FLOATS, "float"), shapes):
        if dtype not in (("float32", "float", autocast) if autocast else FLOATS) or (autocast and shape in SHAPES[9:]):
            continue
        a = Spec(shape, dtype, requires_grad=True)
        for parameters in dict.fromkeys(("float32", "float32" if autocast else dtype)):
            if not operation.takes(a, autocast=bool(autocast), parameters=parameters):
                continue
            uses = list(combinations(operation, a, parameters, autocast=autocast))
            full = dtype == parameters == "float32" and not autocast
            for train in modes if uses else ():
                for _ in range(max(len(uses), 3) if full else 1):
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
        if operation.setup:
            self.module = evaluated(render(operation.setup, "abcd", trial.specs, trial.attributes))
            self.module.to(getattr(torch, trial.parameters)).train(trial.train).requires_grad_(wants[-1])
            evaluated("fill(module)", {"module": self.module})
        before, state = self._versions(), torch.default_generator.manual_seed(3).get_state()
        with torch.set_grad_enabled(grad), autocast(trial.autocast):
            self.value = self._forward()
        self.draws = not torch.equal(state, torch.get_rng_state())
        self.changed = [a != b for a, b in zip(before, self._versions(), strict=True)]
        self.results: list[torch.Tensor] = [self.value] if len(trial.declared) == 1 else list(self.value)
        self.differentiable = [r for r in self.results if r.requires_grad]
        parameters = list(self.module.parameters()) if self.module else []
        self.wanting = [t for t in (*self.leaves, *parameters) if isinstance(t, torch.Tensor) and t.requires_grad]

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
        return [o._version for o in self.operands if isinstance(o, torch.Tensor)]

    @property
    def places(self) -> set[int]:
        """The memory of the operands."""
        return {storage(o) for o in self.operands if isinstance(o, torch.Tensor)} - {0}

    def gradients(self, *results: torch.Tensor) -> list[torch.Tensor | None]:
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
    return compile(text, text, "eval")


def autocast(dtype: str) -> contextlib.AbstractContextManager[Any]:
    return torch.autocast("cpu", dtype=getattr(torch, dtype)) if dtype else contextlib.nullcontext()


def same_bits(first: Sequence[torch.Tensor | None], second: Sequence[torch.Tensor | None]) -> bool:
    return all(a is b or (a is not None and b is not None and torch.equal(a, b)) for a, b in zip(first, second, strict=True))


# what is seen -----------------------------------------------------------------------------------------------------------


class Observation:
    """What a trial was seen to do."""

    def __init__(self, trial: Trial) -> None:
        run, again, without = Run(trial), Run(trial), Run(trial, grad=False)
        gradients = run.gradients(*run.differentiable)
        places = [storage(r) for r in run.results if storage(r)]
        self.trial = trial
        self.results = [(tuple(r.shape), str(r.dtype).removeprefix("torch.")) for r in run.results]
        self.finite = all(bool(t.isfinite().all()) for t in (*gradients, *run.results) if t is not None)
        self.moves = any(bool(g.count_nonzero()) for g in gradients[:1] if g is not None)
        self.shares = bool(run.places.intersection(places))
        self.overlaps = len(set(places)) < len(places)
        self.is_operand = run.value is run.operands[0]
        self.standard = all(r.is_contiguous() for r in run.results)
        self.changed, self.draws, self.sums = run.changed, run.draws, sums(run)
        self.repeats = same_bits([*run.results, *gradients], [*again.results, *again.gradients(*again.differentiable)])
        self.same_without_grad = same_bits(run.results, without.results)
        self.parameters = bool(run.module and list(run.module.parameters()))
        self.buffers = bool(run.module and list(run.module.buffers()))
        self.reached = all(g is not None for r in run.differentiable for g in run.gradients(r)) if trial.plain else True
        self.wrong_flags = [wants for wants in flags(run) if not right_flags(trial, wants)] if trial.plain else []
        self.raises_when_changed = trial.plain and any(raises_when_changed(trial, n) for n in range(len(run.differentiable)))
        self.said: list[str] = []

    def __repr__(self) -> str:
        return repr(self.trial)


def observe(trial: Trial) -> Observation:
    """Run a trial several times, and look."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            seen = Observation(trial)
    except Exception as error:
        error.add_note(f"in {trial}")
        raise
    seen.said = sorted({str(w.message) for w in caught})
    return seen


@functools.cache
def observed(name: str) -> list[Observation]:
    """Return what an operation was seen to do."""
    with alone():
        return [observe(trial) for trial in trials(CATALOGUE[name])]


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Run in one thread, and leave the generator as it was."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        torch.set_num_threads(threads)


def sums(run: Run) -> list[int]:
    """Return how many gradients each leaf sums: the edges of the graph into it."""
    edges: Counter[Any] = Counter()
    todo = [node for node in {r.grad_fn for r in run.differentiable} if node is not None]
    seen = set(todo)
    while todo:
        for node, _ in todo.pop().next_functions:
            edges[node] += 1
            if node is not None and node not in seen:
                seen.add(node)
                todo.append(node)
    counts = {id(node.variable): count for node, count in edges.items() if hasattr(node, "variable")}
    return [counts.get(id(leaf), 0) for leaf in run.wanting]


def raises_when_changed(trial: Trial, number: int) -> bool:
    """Does changing a result in place make the backward raise?"""
    run = Run(trial)
    try:
        run.differentiable[number].add_(1)
        run.gradients(*run.differentiable)
    except RuntimeError:
        return True
    return False


def flags(run: Run) -> Iterator[tuple[bool, ...]]:
    """Yield which operands, or whether the module's parameters, require grad: none, then one at a time."""
    able = [*(s.floating for s in run.trial.specs), bool(run.module)]
    yield (False,) * len(able)
    yield from (tuple(n == m for m in range(len(able))) for n in range(len(able)) if able[n])


def right_flags(trial: Trial, wants: tuple[bool, ...]) -> bool:
    """Do floating results require grad where something does, and only there?"""
    run = Run(trial, wants=wants)
    right = trial.operation.differentiable and bool(run.wanting)
    return all(r.requires_grad == (right and r.is_floating_point()) for r in run.results)


# the laws ---------------------------------------------------------------------------------------------------------------

every_operation = pytest.mark.parametrize("name", CATALOGUE)
#: Saved, or computed by another kernel, on CUDA: cuDNN is told whether an RNN trains.
ELSEWHERE = {"rnn", "gru"}


@every_operation
def test_an_operation_can_be_drawn_and_says_nothing(name: str) -> None:
    """It runs forward and backward wherever it is taken, without a warning."""
    seen = observed(name)
    assert seen
    assert [(s, s.said) for s in seen if s.said] == []


@every_operation
def test_declared_results_are_the_real_ones(name: str) -> None:
    """Number, shape and dtype; a dtype that only the run decides is any floating one."""

    def agree(declared: Sequence[tuple[tuple[int, ...], str]], real: Sequence[tuple[tuple[int, ...], str]]) -> bool:
        pairs = list(zip(declared, real, strict=False))
        return len(declared) == len(real) and all(
            s == t and (d == e or (d == "float" and e in FLOATS)) for (s, d), (t, e) in pairs
        )

    assert [(s, s.trial.declared, s.results) for s in observed(name) if not agree(s.trial.declared, s.results)] == []


@every_operation
def test_results_and_gradients_are_finite_and_seldom_all_zero(name: str) -> None:
    """A gradient that is zero or NaN hides whatever a subject does wrong behind it."""
    seen = observed(name)
    assert [s for s in seen if not s.finite] == []
    several = [s for s in seen if s.trial.operation.differentiable and s.trial.specs[0].size > 1]
    assert len([s for s in several if not s.moves]) <= len(several) / 6


@every_operation
def test_no_values_make_a_nan(name: str) -> None:
    """Not even ties, zeros, and values far from one."""
    with alone():
        for fill, trial in itertools.product(("integers", "zero", "large", "tiny"), trials(CATALOGUE[name])):
            if trial.plain and trial.layout == "contiguous":
                run = Run(replace(trial, fill=fill))
                tensors = [t for t in (*run.results, *run.gradients(*run.differentiable)) if t is not None]
                assert not any(t.isnan().any() for t in tensors), run.trial


@every_operation
def test_floating_results_require_grad_where_something_does(name: str) -> None:
    """Iff the operation is differentiable; and each of them sends a gradient to all that requires grad."""
    assert [(s, s.wrong_flags) for s in observed(name) if s.wrong_flags] == []
    assert [s for s in observed(name) if not s.reached] == []


@every_operation
def test_only_views_share_memory(name: str) -> None:
    """With an operand, or with each other; and each declared view does, somewhere."""
    operation, seen = CATALOGUE[name], observed(name)
    sharing = [s for s in seen if s.shares]
    assert [s for s in seen if s.overlaps and not operation.view] == []
    assert sharing == [] or operation.view or operation.in_place
    assert sharing != [] or not operation.view


@every_operation
def test_only_strided_operations_leave_standard_strides(name: str) -> None:
    """Of contiguous operands; and each one that is declared to does, somewhere."""
    other = [s for s in observed(name) if s.trial.layout == "contiguous" and not s.standard]
    assert bool(other) == CATALOGUE[name].strided, other


@every_operation
def test_only_operations_in_place_change_an_operand(name: str) -> None:
    """Those change the first one, unless in eval mode or without elements, and return it."""
    operation, seen = CATALOGUE[name], observed(name)
    changes = [s for s in seen if s.trial.train and s.trial.specs[0].size > 0] if operation.in_place else []
    assert [s for s in changes if not s.changed[0]] == []
    assert [s for s in seen if any(s.changed[1:] if operation.in_place else s.changed)] == []
    assert [s for s in seen if operation.in_place and not s.is_operand] == []


@every_operation
def test_a_result_that_is_not_saved_may_be_changed_in_place(name: str) -> None:
    """One that is declared to be saved makes the backward raise, somewhere; of views, nothing is said."""
    operation = CATALOGUE[name]
    raising = [s for s in observed(name) if s.raises_when_changed]
    assert raising == [] or operation.saves_result or operation.view
    assert raising != [] or not operation.saves_result or name in ELSEWHERE


@every_operation
def test_grad_mode_does_not_change_bits(name: str) -> None:
    """Unless another kernel is declared."""
    operation = CATALOGUE[name]
    differing = [s for s in observed(name) if not s.same_without_grad]
    assert differing == [] or operation.other_kernel
    assert differing != [] or not operation.other_kernel or name in ELSEWHERE


@every_operation
def test_equal_seeds_give_equal_bits(name: str) -> None:
    """Of results and gradients."""
    assert [s for s in observed(name) if not s.repeats] == []


@every_operation
def test_no_leaf_sums_more_gradients_than_declared(name: str) -> None:
    """A partner sums one at most."""
    operation, seen = CATALOGUE[name], observed(name)
    partners = slice(1, 1 + len(operation.partners))
    assert [(s, s.sums) for s in seen if max(s.sums, default=0) > operation.uses] == []
    assert [(s, s.sums) for s in seen if max(s.sums[partners], default=0) > 1 and not operation.trainable] == []


@every_operation
def test_only_trainable_operations_have_parameters(name: str) -> None:
    """Buffers make no operation trainable, but they too have a dtype that operands must go with."""
    operation, seen = CATALOGUE[name], observed(name)
    assert {s.parameters for s in seen} == {operation.trainable}
    assert not any(s.buffers for s in seen) or operation.mixed


@every_operation
def test_only_random_operations_draw(name: str) -> None:
    """In training they always do, unless there is next to nothing to draw for."""
    random, seen = bool(RANDOM_TRAITS.intersection(CATALOGUE[name].traits)), observed(name)
    assert [s for s in seen if s.draws and not random] == []
    assert [s for s in seen if random and s.trial.train and s.trial.specs[0].size > 1 and not s.draws] == []


@pytest.mark.parametrize("name", [o.name for o in CATALOGUE.values() if o.elementwise])
def test_gradients_of_elementwise_operations_do_not_depend_on_strides(name: str) -> None:
    """Not in any bit, at sizes at which kernels take memory in a row another way."""
    with alone():
        for trial in [t for t in trials(CATALOGUE[name], ((4, 4, 4), (8, 8), (2, 3, 5))) if t.train and not t.autocast]:
            run = Run(trial)
            [result] = run.differentiable
            assert len(run.wanting) == 1
            for layout in LAYOUTS[1:-1]:
                strided = evaluated(laid_out(tuple(result.shape), 41, trial.declared[0][1], "generic", layout))
                first, second = (
                    torch.autograd.grad(result, run.wanting, c, retain_graph=True) for c in (strided, strided.contiguous())
                )
                assert same_bits(first, second), (trial, layout)


def in_double_precision(trial: Trial) -> Trial:
    """Return what the run is that a low-precision one is measured by: the line names no other dtype."""
    operation = replace(trial.operation, line=re.sub(r"torch\.b?float(16|32)\b", "torch.float64", trial.operation.line))
    real = tuple("float64" if s.floating else dtype for s, dtype in zip(trial.specs, trial.real, strict=True))
    return replace(trial, operation=operation, real=real, parameters="float64", autocast="")


@every_operation
def test_in_double_precision_results_are_double_and_as_fresh_as_ever(name: str) -> None:
    """A statement that may change a result in place may do so there too."""
    with alone():
        for trial in trials(CATALOGUE[name]):
            if trial.layout == "contiguous":
                run, operation = Run(in_double_precision(trial)), CATALOGUE[name]
                assert all(r.dtype == torch.float64 for r in run.results if r.is_floating_point()), trial
                shared = run.places.intersection(map(storage, run.results))
                assert not shared or operation.view or operation.in_place, trial


@pytest.mark.parametrize("name", [o.name for o in CATALOGUE.values() if RANDOM_TRAITS.intersection(o.traits)])
def test_the_noise_of_random_operations_can_be_replayed_in_double_precision(name: str) -> None:
    """Or there would be no truth to measure them by."""
    with alone():
        for trial in [t for t in trials(CATALOGUE[name]) if t.plain and t.train]:
            with Tape() as tape:
                run = Run(trial)
            with tape.rewind():
                truth = Run(in_double_precision(trial))
            for single, double in zip(run.results, truth.results, strict=True):
                assert torch.allclose(single.double(), double, rtol=1e-4, atol=1e-5), trial
