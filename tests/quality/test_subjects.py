"""Contracts of the built-in subjects are true: every limit shows in a case, and every trait that is supported is judged."""

import functools
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings

from gradcheck_plus.campaign.judging import Verdict, decide
from gradcheck_plus.case import Case
from gradcheck_plus.expectations import Expectation, contract
from gradcheck_plus.strategies.cases import DTYPES, aimed_cases, allowed_traits
from gradcheck_plus.subject import Kind, Planned
from gradcheck_plus.subjects import SUBJECTS, contract_of
from gradcheck_plus.subjects.builtin import BuiltIn
from gradcheck_plus.subjects.table import expectations, page, status
from gradcheck_plus.traits import TRAITS, drawable, traits
from gradcheck_plus.zoo import ZOO

PAGE = Path(__file__).parents[2] / "docs" / "subjects.md"
HERE = [pytest.param(s, id=s.name) for s in SUBJECTS.values()]
#: Cases that are drawn to show a limit.
MOST, MANY = 40, 400
#: What is aimed at where a trait cannot be, or seldom shows its limit alone.
AIMS = {
    "region-without-grad-input": ("no-grad-input",),
    "region-without-grad-output": ("many-segments", "detached-value"),
    "non-grad-output": (),
    "none-cotangent": ("none-cotangent", "several-results", "many-segments", "custom-function"),
    "hook-on-tied-parameter": ("parameter-hook", "tied-across-segments", "nested-module", "recurrent"),
    "hook-on-unreached-input": ("input-hook", "unused-input"),
    "saved-result": ("in-place",),
    "wrapped-result-changed": ("inner-wrap", "in-place", "state-in-result"),
    "integer-output": ("integer-value",),
}


def installed(subject: BuiltIn) -> None:
    if subject.missing:
        pytest.skip(subject.missing)


@functools.cache
def drawn(
    kind: Kind, planned: Planned, always: tuple[str, ...], without: tuple[str, ...], count: int, *, only: bool = False
) -> list[Case]:
    """Return cases, the same ones in every run; they aim always at some traits, at some never, and at others or not."""
    found: list[Case] = []
    allowed = allowed_traits(kind, always if only else None, without, DTYPES)

    @seed(4)
    @settings(
        max_examples=count, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(case=aimed_cases(kind, allowed, always, None, DTYPES, 5, planned))
    def keep(case: Case) -> None:
        found.append(case)

    keep()
    return found


def verdicts(subject: BuiltIn, chosen: Iterable[Case], *, known: bool = True) -> Iterator[Verdict]:
    names = (subject.name, subject.subject.builds_on)
    held = contract_of(subject.contract).for_subject(*names, torch=str(torch.__version__), known=known)
    for case in chosen:
        yield decide(case, subject.subject, held)


def own(name: str) -> tuple[Expectation, ...]:
    """Return the entries that stand in the file of a contract itself."""
    text = (resources.files("gradcheck_plus.contracts") / f"{name}.toml").read_text(encoding="utf-8")
    entries = contract(name).expectations
    return entries[len(entries) - len(tomllib.loads(text).get("expectation", ())) :]


def under(name: str) -> list[BuiltIn]:
    """Return the subjects that are held to a contract, or to one that extends it; and a twin, where torch's own raises."""
    twins = {
        e.twin_target: BuiltIn(e.twin_target, e.kind, e.twin, e.contract, "", target=e.twin_target)
        for e in ZOO.values()
        if e.contract == name
    }
    every = [*SUBJECTS.values(), *(twins.values() if name == "split-backward" else ())]
    held = [s for s in every if set(own(name)) <= set(contract(s.contract).expectations) and not s.missing]
    return sorted(held, key=lambda s: (s.contract != name, s.contract != "reentrant"))


@pytest.mark.parametrize("name", sorted({s.contract for s in SUBJECTS.values() if not s.missing}))
def test_every_limit_shows_in_a_case(name: str) -> None:
    """One that does not would excuse what nobody has seen."""
    left = [e for e in own(name) if e.effect != "known"]
    for subject in under(name):
        mine = [e for e in left if e.subject in ("*", subject.name, subject.on or subject.name)]
        for entry in mine:
            aimed = tuple(t for t in AIMS.get(entry.trait, (entry.trait,)) if t in drawable(subject.kind))
            pool = drawn(subject.kind, subject.planned, (*subject.aims, *aimed), (), MOST, only=True) if aimed else []
            pool = pool + drawn(subject.kind, subject.planned, subject.aims, (), MANY)  # for what it seldom shows alone
            having = (c for c in pool if entry.trait in traits(c))
            if any(entry in {e for _, e in verdict.excused} for verdict in verdicts(subject, having)):
                left.remove(entry)

    assert [(e.trait, e.effect, e.kind) for e in left] == []


@pytest.mark.parametrize("subject", HERE)
def test_every_trait_that_is_supported_is_judged_and_right(subject: BuiltIn) -> None:
    installed(subject)
    marks = {t: status(subject, t) for t in TRAITS}
    wanted = {t for t in drawable(subject.kind) if marks[t] == "✓"}
    excused = {e.trait for e in expectations(subject) if e.wholesale or (e.effect == "refuses" and TRAITS[e.trait].drawn)}
    without = tuple(t for t in drawable(subject.kind) if t in excused)
    pool = drawn(subject.kind, subject.planned, subject.aims, without, MANY)
    judged: Counter[str] = Counter()
    chosen = list(covering([c for c in pool if excused.isdisjoint(traits(c))], wanted))
    for verdict in verdicts(subject, chosen):
        assert verdict.faults == (), [m.message for m in verdict.faults]
        judged.update(verdict.judged)

    assert wanted - set(judged) == set()


def covering(having: list[Case], wanted: set[str]) -> Iterator[Case]:
    """Yield few cases that have all of some traits between them, each three times where there are so many."""
    left = Counter(dict.fromkeys(wanted, 3))
    for case in having:
        found = {t for t in traits(case) if left[t] > 0}
        if found:
            left.subtract(found)
            yield case


def test_the_feature_table_is_current() -> None:
    """`python -m gradcheck_plus.subjects.table > docs/subjects.md` makes it so."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_subject_has_a_mark_for_every_trait_of_its_kind() -> None:
    for subject in SUBJECTS.values():
        for name, trait in TRAITS.items():
            assert status(subject, name) in ("", "✓", "(limit)", "limit", "refuses", "known")
            assert subject.kind in trait.kinds or status(subject, name) == ""
