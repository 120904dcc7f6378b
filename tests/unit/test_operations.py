"""The laws of the operation catalogue: every entry does what it declares, on every operand that it takes.

Strategies build valid programs on these flags, and traits are read off them: a wrong one is a false alarm or a blind spot of
the whole tool. Each law is judged on what an operation was seen to do (`observed`), over shapes, dtypes, layouts, partners,
attributes, autocast, train and eval mode.
"""

import contextlib
import functools
import itertools
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

import pytest
import torch

from gradcheck_plus import support
from gradcheck_plus.execute import Tape
from gradcheck_plus.operations import CATALOGUE, Operation
from gradcheck_plus.record import storage
from gradcheck_plus.source import laid_out

FLOATS = ("float32", "float64", "bfloat16", "float16")
STRIDED = ("transposed", "strided", "offset", "expanded")
RANDOM_TRAITS = {"dropout", "random", "random-activation"}

Trials = Callable[..., Iterator[Any]]
Observed = Callable[[str], Sequence["Observation"]]


def same_bits(first: Sequence[torch.Tensor | None], second: Sequence[torch.Tensor | None]) -> bool:
    return all(a is b or (a is not None and b is not None and torch.equal(a, b)) for a, b in zip(first, second, strict=True))


# what is seen -----------------------------------------------------------------------------------------------------------


class Observation:
    """What a trial was seen to do."""

    def __init__(self, trial: Any) -> None:
        run, again, without = trial.run(), trial.run(), trial.run(grad=False)
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


def observe(trial: Any) -> Observation:
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


@pytest.fixture(scope="module")
def observed(trials: Trials) -> Observed:
    """What an operation was seen to do."""

    @functools.cache
    def look(name: str) -> list[Observation]:
        with alone():
            return [observe(trial) for trial in trials(CATALOGUE[name])]

    return look


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


def sums(run: Any) -> list[int]:
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


def raises_when_changed(trial: Any, number: int) -> bool:
    """Does changing a result in place make the backward raise?"""
    run = trial.run()
    try:
        run.differentiable[number].add_(1)
        run.gradients(*run.differentiable)
    except RuntimeError:
        return True
    return False


def flags(run: Any) -> Iterator[tuple[bool, ...]]:
    """Yield which operands, or whether the module's parameters, require grad: none, then one at a time."""
    able = [*(s.floating for s in run.trial.specs), bool(run.module)]
    yield (False,) * len(able)
    yield from (tuple(n == m for m in range(len(able))) for n in range(len(able)) if able[n])


def right_flags(trial: Any, wants: tuple[bool, ...]) -> bool:
    """Do floating results require grad where something does, and only there?"""
    run = trial.run(wants=wants)
    right = trial.operation.differentiable and bool(run.wanting)
    return all(r.requires_grad == (right and r.is_floating_point()) for r in run.results)


# the laws ---------------------------------------------------------------------------------------------------------------

FAMILIES = list(dict.fromkeys(o.family for o in CATALOGUE.values()))


def each(wanted: Callable[[Operation], object]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a law about one operation a test of each family, of those operations that it is about: a test each would be slow."""

    def of_families(law: Callable[..., None]) -> Callable[..., None]:
        def test(family: str, **fixtures: Any) -> None:
            for name in [o.name for o in CATALOGUE.values() if o.family == family and wanted(o)]:
                try:
                    law(name, **fixtures)
                except BaseException as error:
                    error.add_note(f"the operation is {name!r}")
                    raise

        parameters = [p.replace(name="family") if p.name == "name" else p for p in signature(law).parameters.values()]
        test.__name__, test.__doc__ = law.__name__, law.__doc__
        test.__signature__ = signature(law).replace(parameters=parameters)  # type: ignore[attr-defined] # for pytest to read
        families = [f for f in FAMILIES if any(o.family == f and wanted(o) for o in CATALOGUE.values())]
        marked: Callable[..., None] = pytest.mark.parametrize("family", families, scope="module")(test)
        return marked

    return of_families


every_operation = each(lambda operation: True)
#: Saved, or computed by another kernel, on CUDA: cuDNN is told whether an RNN trains.
ELSEWHERE = {"rnn", "gru"}


@every_operation
def test_an_operation_can_be_drawn_and_says_nothing(name: str, observed: Observed) -> None:
    """It runs forward and backward wherever it is taken, without a warning."""
    seen = observed(name)
    assert seen
    assert [(s, s.said) for s in seen if s.said] == []


@every_operation
def test_declared_results_are_the_real_ones(name: str, observed: Observed) -> None:
    """Number, shape and dtype; a dtype that only the run decides is any floating one."""

    def agree(declared: Sequence[tuple[tuple[int, ...], str]], real: Sequence[tuple[tuple[int, ...], str]]) -> bool:
        pairs = list(zip(declared, real, strict=False))
        return len(declared) == len(real) and all(
            s == t and (d == e or (d == "float" and e in FLOATS)) for (s, d), (t, e) in pairs
        )

    assert [(s, s.trial.declared, s.results) for s in observed(name) if not agree(s.trial.declared, s.results)] == []


@every_operation
def test_results_and_gradients_are_finite_and_seldom_all_zero(name: str, observed: Observed) -> None:
    """A gradient that is zero or NaN hides whatever a subject does wrong behind it."""
    seen = observed(name)
    assert [s for s in seen if not s.finite] == []
    several = [s for s in seen if s.trial.operation.differentiable and s.trial.specs[0].size > 1]
    assert len([s for s in several if not s.moves]) <= len(several) / 6


@every_operation
def test_no_values_make_a_nan(name: str, trials: Trials) -> None:
    """Not even ties, zeros, and values far from one."""
    with alone():
        for fill, trial in itertools.product(("integers", "zero", "large", "tiny"), trials(CATALOGUE[name])):
            if trial.plain and trial.layout == "contiguous":
                run = replace(trial, fill=fill).run()
                tensors = [t for t in (*run.results, *run.gradients(*run.differentiable)) if t is not None]
                assert not any(t.isnan().any() for t in tensors), run.trial


@every_operation
def test_floating_results_require_grad_where_something_does(name: str, observed: Observed) -> None:
    """Iff the operation is differentiable; and each of them sends a gradient to all that requires grad."""
    assert [(s, s.wrong_flags) for s in observed(name) if s.wrong_flags] == []
    assert [s for s in observed(name) if not s.reached] == []


@every_operation
def test_only_views_share_memory(name: str, observed: Observed) -> None:
    """With an operand, or with each other; and each declared view does, somewhere."""
    operation, seen = CATALOGUE[name], observed(name)
    sharing = [s for s in seen if s.shares]
    assert [s for s in seen if s.overlaps and not operation.view] == []
    assert sharing == [] or operation.view or operation.in_place
    assert sharing != [] or not operation.view


@every_operation
def test_only_strided_operations_leave_standard_strides(name: str, observed: Observed) -> None:
    """Of contiguous operands; and each one that is declared to does, somewhere."""
    other = [s for s in observed(name) if s.trial.layout == "contiguous" and not s.standard]
    assert bool(other) == CATALOGUE[name].strided, other


@every_operation
def test_only_operations_in_place_change_an_operand(name: str, observed: Observed) -> None:
    """Those change the first one, unless in eval mode or without elements, and return it."""
    operation, seen = CATALOGUE[name], observed(name)
    changes = [s for s in seen if s.trial.train and s.trial.specs[0].size > 0] if operation.in_place else []
    assert [s for s in changes if not s.changed[0]] == []
    assert [s for s in seen if any(s.changed[1:] if operation.in_place else s.changed)] == []
    assert [s for s in seen if operation.in_place and not s.is_operand] == []


@every_operation
def test_a_result_that_is_not_saved_may_be_changed_in_place(name: str, observed: Observed) -> None:
    """One that is declared to be saved makes the backward raise, somewhere; of views, nothing is said."""
    operation = CATALOGUE[name]
    raising = [s for s in observed(name) if s.raises_when_changed]
    assert raising == [] or operation.saves_result or operation.view
    assert raising != [] or not operation.saves_result or name in ELSEWHERE


@every_operation
def test_grad_mode_does_not_change_bits(name: str, observed: Observed) -> None:
    """Unless another kernel is declared."""
    operation = CATALOGUE[name]
    differing = [s for s in observed(name) if not s.same_without_grad]
    assert differing == [] or operation.other_kernel
    assert differing != [] or not operation.other_kernel or name in ELSEWHERE


@every_operation
def test_equal_seeds_give_equal_bits(name: str, observed: Observed) -> None:
    """Of results and gradients."""
    assert [s for s in observed(name) if not s.repeats] == []


@every_operation
def test_no_leaf_sums_more_gradients_than_declared(name: str, observed: Observed) -> None:
    """A partner sums one at most."""
    operation, seen = CATALOGUE[name], observed(name)
    partners = slice(1, 1 + len(operation.partners))
    assert [(s, s.sums) for s in seen if max(s.sums, default=0) > operation.uses] == []
    assert [(s, s.sums) for s in seen if max(s.sums[partners], default=0) > 1 and not operation.trainable] == []


@every_operation
def test_only_trainable_operations_have_parameters(name: str, observed: Observed) -> None:
    """Buffers make no operation trainable, but they too have a dtype that operands must go with."""
    operation, seen = CATALOGUE[name], observed(name)
    assert {s.parameters for s in seen} == {operation.trainable}
    assert not any(s.buffers for s in seen) or operation.mixed


@every_operation
def test_only_random_operations_draw(name: str, observed: Observed) -> None:
    """In training they always do, unless there is next to nothing to draw for."""
    random, seen = bool(RANDOM_TRAITS.intersection(CATALOGUE[name].traits)), observed(name)
    assert [s for s in seen if s.draws and not random] == []
    assert [s for s in seen if random and s.trial.train and s.trial.specs[0].size > 1 and not s.draws] == []


@each(lambda operation: operation.elementwise)
def test_gradients_of_elementwise_operations_do_not_depend_on_strides(name: str, trials: Trials) -> None:
    """Not in any bit, at sizes at which kernels take memory in a row another way."""
    with alone():
        for trial in [t for t in trials(CATALOGUE[name], ((4, 4, 4), (8, 8), (2, 3, 5))) if t.train and not t.autocast]:
            run = trial.run()
            [result] = run.differentiable
            assert len(run.wanting) == 1
            for layout in STRIDED:
                strided = eval(laid_out(tuple(result.shape), 41, trial.declared[0][1], "generic", layout), vars(support))
                first, second = (
                    torch.autograd.grad(result, run.wanting, c, retain_graph=True) for c in (strided, strided.contiguous())
                )
                assert same_bits(first, second), (trial, layout)


@every_operation
def test_in_double_precision_results_are_double_and_as_fresh_as_ever(name: str, trials: Trials) -> None:
    """A statement that may change a result in place may do so there too."""
    with alone():
        for trial in trials(CATALOGUE[name]):
            if trial.layout == "contiguous":
                run, operation = trial.in_double_precision().run(), CATALOGUE[name]
                assert all(r.dtype == torch.float64 for r in run.results if r.is_floating_point()), trial
                shared = run.places.intersection(map(storage, run.results))
                assert not shared or operation.view or operation.in_place, trial


@each(lambda operation: RANDOM_TRAITS.intersection(operation.traits))
def test_the_noise_of_random_operations_can_be_replayed_in_double_precision(name: str, trials: Trials) -> None:
    """Or there would be no truth to measure them by."""
    with alone():
        for trial in [t for t in trials(CATALOGUE[name]) if t.plain and t.train]:
            with Tape() as tape:
                run = trial.run()
            with tape.rewind():
                truth = trial.in_double_precision().run()
            for single, double in zip(run.results, truth.results, strict=True):
                assert torch.allclose(single.double(), double, rtol=1e-4, atol=1e-5), trial
