"""A registry holds what was added, refuses duplicates, and suggests near names."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.operations import CATALOGUE
from gradcheck_plus.registry import Registry
from gradcheck_plus.subjects import SUBJECTS
from gradcheck_plus.traits import TRAITS


class Colour(NamedTuple):
    name: str
    shade: int = 0


def filled(*names: str) -> Registry[Colour]:
    registry: Registry[Colour] = Registry("colour")
    for name in names:
        registry.add(Colour(name))
    return registry


@settings(max_examples=50, database=None, deadline=None, derandomize=True)
@given(st.lists(st.text(), unique=True))
def test_what_was_added_is_there_in_order(names: list[str]) -> None:
    registry = filled(*names)

    assert list(registry) == names
    assert len(registry) == len(names)
    assert [registry[name] for name in names] == [Colour(name) for name in names]
    assert all(name in registry for name in names)


def test_add_returns_the_entry() -> None:
    """So that a definition can be an assignment."""
    entry = Colour("red")

    assert Registry[Colour]("colour").add(entry) is entry


def test_a_duplicate_is_refused_and_changes_nothing() -> None:
    registry = filled("red", "blue")

    with pytest.raises(
        InvalidArgument, match=r"^`colour`='red' is taken by Colour\(name='red', shade=0\)\. Give .* another name"
    ):
        registry.add(Colour("red", 2))

    assert registry["red"] == Colour("red", 0)
    assert list(registry) == ["red", "blue"]


def test_an_unknown_name_suggests_a_near_one() -> None:
    with pytest.raises(InvalidArgument, match=r"`colour`='rad' is not known\. Did you mean 'red'\?"):
        filled("red", "blue")["rad"]


def test_asking_whether_a_name_is_known_never_raises() -> None:
    assert "green" not in filled("red")
    assert None not in filled("red")


def test_a_removed_entry_makes_room_for_another() -> None:
    registry = filled("red", "blue")
    registry.remove("red")
    registry.add(Colour("red", 2))

    assert list(registry) == ["blue", "red"]
    assert registry["red"].shade == 2


def test_what_is_not_there_cannot_be_removed() -> None:
    with pytest.raises(InvalidArgument, match="Did you mean 'red'"):
        filled("red").remove("redd")


@pytest.mark.parametrize(("registry", "noun"), [(CATALOGUE, "operation"), (TRAITS, "trait"), (SUBJECTS, "subject")])
def test_errors_name_a_command_that_exists(registry: Mapping[str, Any], noun: str) -> None:
    """``gradcheck-plus list`` knows operations, traits, subjects and contracts."""
    with pytest.raises(InvalidArgument, match=f"`gradcheck-plus list {noun}s` shows all {len(registry)}"):
        registry["no such name"]
