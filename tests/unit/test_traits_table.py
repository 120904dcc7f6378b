"""The trait table: what traits mean, need and exclude, and that drawn cases have them."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import pytest

from gradcheck_plus.case import Case
from gradcheck_plus.operations import CATALOGUE
from gradcheck_plus.subject import KINDS, Kind
from gradcheck_plus.traits import TRAITS, clashes, compatible, drawable, exact, traits
from gradcheck_plus.traits.impossible import IMPOSSIBLE, impossible

Write = Callable[..., Case]


# the table --------------------------------------------------------------------------------------------------------------


def test_every_trait_has_a_meaning_in_words() -> None:
    for name, trait in TRAITS.items():
        assert name == trait.name
        assert name == name.lower()
        assert " " not in name
        assert 5 < len(trait.meaning) < 90, name
        assert not trait.meaning.endswith("."), name


def test_meanings_tell_traits_apart() -> None:
    assert len({t.meaning for t in TRAITS.values()}) == len(TRAITS)


#: Nobody is known to get them wrong.
NO_REPORT = {"duplicate-output", "outer-use", "own-module"}


def test_every_trait_has_a_public_source() -> None:
    """Or is one of the few that none is known for; what a call of a function is varied by aside."""
    without = {name for name, trait in TRAITS.items() if not trait.source and trait.kinds != ("function",)}

    assert without == NO_REPORT


def test_traits_speak_only_of_traits_of_the_table() -> None:
    for trait in TRAITS.values():
        assert set(trait.needs) | set(trait.clashes) <= set(TRAITS), trait
        assert trait.name not in {*trait.needs, *trait.clashes}, trait
        assert set(trait.kinds) <= {*KINDS, "function"}, trait
        assert trait.kinds, trait


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_trait_needs_can_be_aimed_at_with_it(kind: Kind) -> None:
    """For the same kind of subject; and what it needs needs nothing more that is not said."""
    for name in drawable(kind):
        needs = TRAITS[name].needs
        assert set(needs) <= set(drawable(kind)), name
        assert all(set(TRAITS[need].needs) <= set(needs) for need in needs), name
        assert all(compatible(a, b) for a in (name, *needs) for b in (name, *needs)), name


def test_what_cannot_be_aimed_at_needs_and_excludes_nothing() -> None:
    assert [t.name for t in TRAITS.values() if not t.drawn and (t.needs or t.clashes)] == []


def test_traits_of_operations_are_traits_of_the_table() -> None:
    found = {trait for operation in CATALOGUE.values() for trait in operation.traits}

    assert found <= set(TRAITS)
    assert all(TRAITS[name].drawn for name in found)


def test_clashes_go_both_ways() -> None:
    for a in TRAITS:
        for b in TRAITS:
            assert compatible(a, b) == compatible(b, a)
            assert compatible(a, b) == (b not in clashes()[a])
    assert not compatible("dropout", "eval")
    assert compatible("dropout", "view")


def test_whatever_cannot_be_aimed_at_together_has_a_reason_not_to_meet() -> None:
    without = [(a, b) for a, b in combinations(TRAITS, 2) if not compatible(a, b) and not impossible(a, b)]

    assert without == []


def test_the_pairs_that_cannot_meet_are_pairs_of_two_drawn_traits() -> None:
    drawn = {name for kind in KINDS for name in drawable(kind)}
    named = {trait for some, others, _ in IMPOSSIBLE for trait in (*some, *others)}

    assert named <= drawn
    assert not any(impossible(name, name) for name in TRAITS)
    assert impossible("eval", "dropout") == impossible("dropout", "eval") != ""


@pytest.mark.parametrize("kind", KINDS)
def test_no_drawn_case_has_a_pair_that_cannot_meet(kind: Kind, drawn: Mapping[Kind, Sequence[Case]]) -> None:
    met = {pair for case in drawn[kind] for pair in combinations(sorted(traits(case)), 2)}

    assert [pair for pair in met if impossible(*pair)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_drawable_traits_are_those_of_the_kind_in_table_order(kind: Kind) -> None:
    assert list(drawable(kind)) == [t.name for t in TRAITS.values() if t.drawn and kind in t.kinds]
    assert "second-backward" not in drawable("stage-backward")
    assert "reversed-keys" not in drawable("checkpoint")


def test_exactness_is_lost_by_any_inexact_trait() -> None:
    inexact = {name for name, trait in TRAITS.items() if trait.inexact}

    assert exact(())
    assert exact(set(TRAITS) - inexact)
    assert {"summed-across-cut", "free-strides", "other-kernel", "own-module"} <= inexact
    assert not any(exact({"view", name}) for name in inexact)


# drawn cases ------------------------------------------------------------------------------------------------------------

#: Cases of generated programs do not have the first; so few have the second that it is shown by hand.
ELSEWHERE = {"own-module", "autocast-inside"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_trait_is_true_for_some_drawn_case_and_false_for_another(
    kind: Kind, drawn: Mapping[Kind, Sequence[Case]]
) -> None:
    """Or nothing would be known of how subjects fare with it, or without. What is only observed may be rare in one kind."""
    found = [traits(case) for case in drawn[kind]]
    anywhere = {trait for cases in drawn.values() for case in cases for trait in traits(case)}
    of_the_kind = {name: trait for name, trait in TRAITS.items() if kind in trait.kinds and name not in ELSEWHERE}

    assert {name for name, trait in of_the_kind.items() if trait.drawn} - frozenset().union(*found) == set()
    assert set(of_the_kind) - anywhere == set()
    assert frozenset.intersection(*found) == frozenset()


def test_autocast_reaches_what_bilinear_calls_and_not_what_sin_does(write: Write) -> None:
    cast, plain, other = (write(line, autocast=dtype) for line, dtype in (
        ("h0 = bilinear(x0)", "bfloat16"), ("h0 = bilinear(x0)", ""), ("h0 = sin(x0)", "bfloat16"),
    ))  # fmt: skip

    assert ["autocast-inside" in traits(case) for case in (cast, plain, other)] == [True, False, False]


@pytest.mark.parametrize("kind", KINDS)
def test_no_drawn_case_has_a_trait_of_another_kind(kind: Kind, drawn: Mapping[Kind, Sequence[Case]]) -> None:
    others = {name for name, trait in TRAITS.items() if kind not in trait.kinds}

    assert [(c, traits(c) & others) for c in drawn[kind] if traits(c) & others] == []


@pytest.mark.parametrize("kind", KINDS)
def test_traits_are_a_function_of_the_case(kind: Kind, drawn: Mapping[Kind, Sequence[Case]]) -> None:
    """Not of how it was drawn."""
    assert [c for c in drawn[kind] if traits(Case.from_json(c.to_json())) != traits(c)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_trait_of_part_of_what_it_needs_is_never_alone(kind: Kind, drawn: Mapping[Kind, Sequence[Case]]) -> None:
    """A trait comes with those that it needs."""
    for case in drawn[kind]:
        found = traits(case)
        missing = {(name, need) for name in found for need in TRAITS[name].needs if need not in found}
        assert missing == set(), case.to_json()


def test_the_plainest_case_has_no_trait(write: Write) -> None:
    assert traits(write("h0 = sin(x0)")) == frozenset()
