"""A named collection that refuses duplicates and suggests near names."""

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import Protocol, TypeVar

from gradcheck_plus.errors import InvalidArgument, unknown


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """The name."""
        ...


T = TypeVar("T", bound=Named)


class Registry(Mapping[str, T]):
    """A mapping from name to entry, filled by `add`.

    Args:
        what: the singular noun used in errors and in ``gradcheck-plus list <what>s``.

    Example:
        >>> from collections import namedtuple
        >>> colours = Registry("colour")
        >>> Colour = namedtuple("Colour", "name")
        >>> colours.add(Colour("red"))
        Colour(name='red')
        >>> colours.add(Colour("red"))
        Traceback (most recent call last):
        gradcheck_plus.errors.InvalidArgument: `colour`='red' is taken by Colour(name='red'). Give the new one another name.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._entries: dict[str, T] = {}

    def add(self, entry: T) -> T:
        """Add an entry and return it.

        Raises:
            InvalidArgument: the name is taken.
        """
        if entry.name in self._entries:
            taken = self._entries[entry.name]
            raise InvalidArgument(f"`{self.what}`={entry.name!r} is taken by {taken!r}. Give the new one another name.")
        self._entries[entry.name] = entry
        return entry

    def remove(self, name: str) -> None:
        """Take an entry out again, as a test does with what it added."""
        del self._entries[self[name].name]

    def __getitem__(self, name: str) -> T:
        """Return the entry; an unknown name raises `InvalidArgument` with the nearest names."""
        try:
            return self._entries[name]
        except KeyError:
            raise unknown(self.what, name, self._entries) from None

    def values(self) -> ValuesView[T]:
        """Return the entries; as fast as a dict's, for the trait table is read through for every case."""
        return self._entries.values()

    def items(self) -> ItemsView[str, T]:
        """Return the pairs of name and entry, likewise."""
        return self._entries.items()

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
