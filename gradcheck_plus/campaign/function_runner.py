"""The runner of functions: draws, judges and shrinks calls in this process."""

import time
from collections.abc import Sequence

import msgspec
from hypothesis.strategies import SearchStrategy

from gradcheck_plus.campaign.block import case_of, run_block
from gradcheck_plus.campaign.inflight import Inflight
from gradcheck_plus.campaign.judging import Verdict
from gradcheck_plus.campaign.plan import Block, Described, Explained, Failure, Inspected, Key, Outcome, Search
from gradcheck_plus.campaign.runner import LocalRunner, check_device, single_thread, tool
from gradcheck_plus.case import Case, Variation
from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.execute.targets import load
from gradcheck_plus.functions.checks import CHECKS
from gradcheck_plus.functions.judging import Tested
from gradcheck_plus.functions.localising import first_divergence
from gradcheck_plus.functions.variations import THEMES
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.repro.calls import call_repro
from gradcheck_plus.results import Costs
from gradcheck_plus.strategies.calls import calls, samples_of
from gradcheck_plus.subjects import contract_of
from gradcheck_plus.traits import TRAITS, traits

Found = tuple[Mismatch, ...]

#: Calls that are tried to make one plainer.
_MOST_TRIED = 200
_USES = frozenset(THEMES["uses"])
#: Other values may show a fault that is not about values, or about those only that are equal.
_PLAINER_CAUSES = (Variation("two-calls"), *(Variation("tied-values", 0, form) for form in range(3)))
#: Variations that are the business of a check of their own: how the result is used, and what requires grad.
_TOLD_BY_CHECKS = _USES - {"two-calls", "called-in-a-loop", "two-backwards", "result-changed-in-place"} | {"frozen-argument"}


class FunctionRunner:
    """Runs a check of a function in this process.

    Args:
        search: what to search.
        inflight: the path of the in-flight file, if one is wanted.

    Raises:
        InvalidArgument: the function, its sample call, a check or a trait cannot be used; the message says what can.
    """

    def __init__(self, search: Search, inflight: str | None = None) -> None:
        self.search, self.settings = search, search.settings
        self.inflight = Inflight(inflight)
        self.inflight.write("load", 0, 0)
        given, reference, inputs = (load(t) if t else None for t in (search.target, search.reference, search.inputs))
        self.inflight.write("sample", 0, 0)
        check_device(self.settings.device)
        contract_of(search.contract or "function")
        samples = None
        if isinstance(inputs, SearchStrategy):
            inputs, samples = samples_of(inputs)
        self.tested = Tested(given, reference, inputs, self.settings.device)
        self.checks = chosen_checks(search, self.tested)
        self.aimed = aimed(search, self.tested.offered)
        self.strategy: SearchStrategy[Case] = calls(
            checks=self.checks,
            variations=self.aimed,
            inputs=search.inputs,
            reference=search.reference,
            samples=samples,
        )

    def describe(self) -> Described:
        """Say what is run."""
        target = "" if self.search.target.startswith("live:") else self.search.target
        return Described(tool(self.settings.device), self.tested.name, target, "function", "", self.aimed)

    def decide(self, case: Case) -> Verdict:
        """Judge one case.

        Raises:
            InvalidArgument: the case is not that of a function.
        """
        if case.call is None:
            raise InvalidArgument("`case` is not that of a function. Write one that `check function` wrote.")
        judged = self.tested.judge(case.call)
        return Verdict(
            judged.name, traits(case), judged.mismatches, vacuous=judged.vacuous, reason=judged.reason, kinks=judged.kinks
        )

    def measure(self, _: Case) -> Costs:
        """Nothing: a function is not run twice."""
        return Costs()

    def block(self, block: Block) -> Outcome:
        """Run one block."""
        with single_thread():
            return run_block(block, self.strategy, self.decide, self.measure, self.inflight, frozenset())

    def case_of(self, block: Block, number: int) -> Case:
        """Return a case of a block without running it."""
        return case_of(block, self.strategy, number)

    def explain(
        self, failure: Failure, key: Key, seconds: float | None, *, hold: str = "", skip: frozenset[int] = frozenset()
    ) -> Explained | None:
        """Take away every variation that the fault does not need; None if it does not fail any more."""
        with single_thread():
            self.inflight.write("shrink", 0, 0)
            shrinker = _Shrinker(self, key, hold, skip, float("inf") if seconds is None else time.monotonic() + seconds)
            return shrinker.run(failure.case)

    def inspect(self, case: Case, mismatch: Mismatch) -> Inspected:
        """Return the standalone program, and where the function parts from its reference."""
        self.inflight.write("inspect", 0, 0)
        assert case.call is not None
        with single_thread():
            s = self.search
            program = call_repro(case, mismatch, self.tested, target=s.target, reference=s.reference)
            return Inspected(program=program, divergence=first_divergence(self.tested, case.call, mismatch))


class _Shrinker:
    """Makes one failing call plainer, and finds the check that says best what is wrong with it."""

    def __init__(self, runner: FunctionRunner, key: Key, hold: str, skip: frozenset[int], deadline: float) -> None:
        self.runner, self.key, self.hold, self.skip, self.deadline = runner, key, hold, skip, deadline
        self.tried = 0

    def run(self, case: Case) -> Explained | None:
        """Return the plainest call that shows the fault; None if the case does not."""
        found = self._judged(case)
        if found is None:
            return None
        first = {m.key for m in found}
        case, found = self._by_values(case, found)
        case, found = self._shrunk(case, found)
        case, found = self._told(case, found)
        mismatch = next(m for m in found if m.key == self.key)
        return Explained(case, mismatch, tuple(sorted(traits(case))), tuple(sorted(first | {m.key for m in found})), self.tried)

    def _shrunk(self, case: Case, found: Found) -> tuple[Case, Found]:
        improved = True
        while improved:
            improved = False
            for candidate in _plainer(case):
                if self.tried > _MOST_TRIED or time.monotonic() > self.deadline:
                    break
                other = self._judged(candidate)
                if other is not None and (not self.hold or self.hold in traits(candidate)):
                    case, found, improved = candidate, other, True
                    break
        return case, found

    def _by_values(self, case: Case, found: Found) -> tuple[Case, Found]:
        """Return a call whose values show the fault, if the check that found it is about something else than its cause."""
        call = case.call
        assert call is not None
        forced = CHECKS[call.check].forces
        if call.check == "values" or not (forced or self.key[0] == "raises"):
            return case, found
        return self._instead(case, found, "values", tuple(v for v in call.variations if v.name != forced))

    def _told(self, case: Case, found: Found) -> tuple[Case, Found]:
        """Return a call of a check that names a cause, where the values show but a symptom."""
        call = case.call
        assert call is not None
        if call.check != "values" or self.hold:
            return case, found
        names = call.names
        if names <= _TOLD_BY_CHECKS:
            rest = tuple(v for v in call.variations if v.name not in _USES | {"frozen-argument"})
            for name in sorted(_telling(self.runner.checks), key=lambda n: CHECKS[n].rank):
                other, said = self._instead(case, found, name, rest)
                if other is not case:
                    return other, said
        if names and names <= {*THEMES["values"], "expanded-argument"}:
            for plainer in _PLAINER_CAUSES:
                other, said = self._instead(case, found, "values", (plainer,))
                if other is not case:
                    return other, said
        return case, found

    def _instead(self, case: Case, found: Found, check: str, variations: tuple[Variation, ...]) -> tuple[Case, Found]:
        """Return another call in the place of one, if it fails in the same way."""
        assert case.call is not None
        other = msgspec.structs.replace(case, call=msgspec.structs.replace(case.call, check=check, variations=variations))
        before, self.key = self.key, (self.key[0], check, self.key[2])
        said = self._judged(other)
        if said is not None:
            return other, said
        self.key = before
        return case, found

    def _judged(self, case: Case) -> Found | None:
        self.tried += 1
        self.runner.inflight.write("shrink", 0, self.tried)
        if self.tried in self.skip:
            return None
        faults = self.runner.decide(case).faults
        return faults if any(m.key == self.key for m in faults) else None


def _telling(checks: Sequence[str]) -> list[str]:
    """Return the checks that compare a function with itself: each fails for its own reason only."""
    return [n for n in checks if CHECKS[n].core is not None and CHECKS[n].rank < CHECKS["values"].rank]


def _plainer(case: Case) -> list[Case]:
    """Return the calls that are plainer by one step: without a variation, or with a plainer form of one."""
    call = case.call
    assert call is not None

    def other(variations: tuple[Variation, ...]) -> Case:
        return msgspec.structs.replace(case, call=msgspec.structs.replace(call, variations=variations))

    vs = call.variations
    found = [other(vs[:i] + vs[i + 1 :]) for i in range(len(vs))]
    for i, v in enumerate(vs):
        plainer = [Variation(v.name, 0, 0), Variation(v.name, v.slot, 0), Variation(v.name, 0, v.choice)]
        plainer += [Variation(v.name, v.slot, choice) for choice in range(1, v.choice)][:4]
        order = (v.slot, v.choice)
        found += [other((*vs[:i], p, *vs[i + 1 :])) for p in plainer if (p.slot, p.choice) < order]
    return found


def chosen_checks(search: Search, tested: Tested) -> tuple[str, ...]:
    """Return the checks that are made, those first whose faults are explained first.

    Raises:
        InvalidArgument: there is no such check, or none is left.
    """
    s = search.settings
    for name in (*(s.checks or ()), *s.without_checks):
        CHECKS[name]
    named = s.checks or tuple(n for n, c in CHECKS.items() if not c.asked or c.suits(tested.sample(0)))
    found = tuple(n for n in named if n not in s.without_checks)
    if not found:
        raise InvalidArgument("`checks`: none is left to make. Leave fewer of them out.")
    return tuple(sorted(found, key=lambda n: -CHECKS[n].often))


def aimed(search: Search, offered: tuple[str, ...]) -> tuple[str, ...]:
    """Return the variations that calls have.

    Raises:
        InvalidArgument: one was asked for that cannot be made of this sample call.
    """
    s = search.settings
    for name in (*(s.traits or ()), *s.without):
        TRAITS[name]
    for name in s.traits or ():
        if name not in offered:
            raise InvalidArgument(
                f"`trait`={name!r} cannot be made of the sample call of {search.target}. Write some of {', '.join(offered)}."
            )
    return tuple(n for n in (s.traits or offered) if n not in s.without)


def runner_for(search: Search, inflight: str | None = None, *, probe: bool = True) -> LocalRunner | FunctionRunner:
    """Return the runner of a search, in this process."""
    if search.kind == "function":
        return FunctionRunner(search, inflight)
    return LocalRunner(search, inflight=inflight, probe=probe)
