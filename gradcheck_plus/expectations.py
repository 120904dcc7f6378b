"""Expectations: one mechanism for limits, known faults and baselines; and contracts, which are lists of them."""

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from gradcheck_plus.errors import InvalidArgument, unknown
from gradcheck_plus.mismatch import Mismatch, MismatchKind, Role
from gradcheck_plus.traits import TRAITS

Effect = Literal["refuses", "limit", "known"]

ANY = "*"


class Expectation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry that excuses one sort of mismatch, and nothing else of a case.

    Attributes:
        trait: the case must have it; ``*`` for every case.
        kind: the kinds of mismatch; ``*`` among them for all.
        role: whose mismatch; ``*`` among them for all.
        effect: ``refuses``: the subject must raise, or else be right; ``limit``: what every such subject documents;
            ``known``: a fault that somebody has reported or accepted.
        source: where that can be read: a URL, an issue, or the name of a documentation.
        subject: the built-in subject it holds for; ``*`` for every subject of the contract.
        leaf: a regular expression that the leaf path must contain; empty for every leaf.
        says: a regular expression that what the subject leaves must contain, such as the message of an exception.
        torch: the torch versions it holds on, as a version specifier; empty for all.
        note: the reason, in words.
    """

    trait: str
    effect: Effect
    source: str
    kind: tuple[MismatchKind | Literal["*"], ...] = ("*",)
    role: tuple[Role | Literal["*"], ...] = ("*",)
    subject: str = ANY
    leaf: str = ""
    says: str = ""
    torch: str = ""
    note: str = ""

    def covers(self, mismatch: Mismatch, traits: Iterable[str]) -> bool:
        """Is this mismatch, in a case with these traits, the one that is expected?"""
        kinds: tuple[str, ...] = ("raises",) if self.effect == "refuses" else self.kind
        return (
            (self.trait == ANY or self.trait in traits)
            and (ANY in kinds or mismatch.kind in kinds)
            and (ANY in self.role or mismatch.role in self.role)
            and (not self.leaf or re.search(self.leaf, mismatch.leaf) is not None)
            and (not self.says or re.search(self.says, mismatch.got) is not None)
        )

    @property
    def wholesale(self) -> bool:
        """Does it excuse so much that cases with its trait teach nothing? Where a subject refuses, it may yet be wrong."""
        return self.effect != "refuses" and ANY in self.kind and ANY in self.role and not self.leaf and not self.says


class Contract(msgspec.Struct, frozen=True):
    """A named list of expectations for a sort of subject; `equal_bits` is whether it can be held to equal bits at all."""

    name: str
    doc: str
    expectations: tuple[Expectation, ...]
    equal_bits: bool = True

    def for_subject(self, *names: str, torch: str, known: bool) -> "Contract":
        """Return what holds for a subject that goes by these names on a torch version, with or without ``known`` entries.

        What is known of torch's own subjects is part of every contract.
        """
        every = (*self.expectations, *contract("torch-known").expectations)
        version = torch.partition("+")[0]
        kept = tuple(
            e
            for e in every
            if e.subject in (ANY, *names)
            and (known or e.effect != "known")
            and SpecifierSet(e.torch).contains(version, prereleases=True)
        )
        return Contract(self.name, self.doc, kept, self.equal_bits)

    def excuse(self, mismatch: Mismatch, traits: Iterable[str]) -> Expectation | None:
        """Return the entry that covers a mismatch, None if it is a fault."""
        return next((e for e in self.expectations if e.covers(mismatch, traits)), None)

    @property
    def pointless(self) -> frozenset[str]:
        """The traits whose cases teach nothing under this contract, which need not be drawn."""
        return frozenset(e.trait for e in self.expectations if e.wholesale)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    doc: str
    extends: tuple[str, ...] = ()
    equal_bits: bool = True
    expectation: tuple[Expectation, ...] = ()


def built_in() -> list[str]:
    """Return the names of the contracts that ship with the package."""
    folder = resources.files("gradcheck_plus.contracts")
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


@cache
def contract(name: str) -> Contract:
    """Return a contract by its name, or from a TOML file by its path.

    Example:
        >>> contract("strict").expectations
        ()

    Raises:
        InvalidArgument: no such contract, or the file does not say what a contract says.
    """
    return _extended(name, ())


def _extended(name: str, heirs: tuple[str, ...]) -> Contract:
    """Return a contract that the heirs extend, each the one after it."""
    own = name if name in built_in() else str(Path(name).resolve())
    if own in heirs:
        raise InvalidArgument(
            f"`extends`={name!r} of `contract`={heirs[-1]!r} leads back to one that extends it. Leave it out of one of them."
        )
    file = _parsed(name, _text(name))
    inherited = [e for parent in file.extends for e in _extended(parent, (*heirs, own)).expectations]
    return Contract(file.name, file.doc, (*inherited, *file.expectation), file.equal_bits)


def _text(name: str) -> str:
    if name in built_in():
        return (resources.files("gradcheck_plus.contracts") / f"{name}.toml").read_text(encoding="utf-8")
    if not name.endswith(".toml") and "/" not in name:
        raise unknown("contract", name, built_in())
    path = Path(name)
    if not path.is_file():
        raise InvalidArgument(f"`contract`={name!r}: there is no such file. Write a name or the path of a TOML file.")
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InvalidArgument(
            f"`contract`={name!r} cannot be read: {error.strerror}. Write the path of a file that can be."
        ) from error


def _parsed(name: str, text: str) -> _File:
    try:
        file = msgspec.convert(tomllib.loads(text), type=_File)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InvalidArgument(
            f"`contract`={name!r} is not a contract: {error}. See `docs/contracts.md` for the fields of an expectation."
        ) from error
    for entry in file.expectation:
        _check(name, entry)
    return file


def _check(name: str, entry: Expectation) -> None:
    if entry.trait != ANY and entry.trait not in TRAITS:
        raise unknown("trait", entry.trait, TRAITS)
    where = f"of the entry for `trait`={entry.trait!r} in `contract`={name!r}"
    if entry.trait == ANY and entry.wholesale:
        raise InvalidArgument(f"`trait`='*' in `contract`={name!r} excuses everything. Name the `kind` or the `role`.")
    if not entry.source.strip():
        raise InvalidArgument(
            f"`source`={entry.source!r} {where}: a limit without a public source is a fault. Write the URL or the document "
            f"that says so."
        )
    try:
        SpecifierSet(entry.torch)
    except InvalidSpecifier as error:
        raise InvalidArgument(
            f"`torch`={entry.torch!r} {where} is no version specifier. Write one such as '>=2.9,<2.15'."
        ) from error
    for field in ("leaf", "says"):
        pattern = getattr(entry, field)
        try:
            re.compile(pattern)
        except re.error as error:
            raise InvalidArgument(
                f"`{field}`={pattern!r} {where} is no regular expression: {error}. Escape what is meant literally with a "
                f"backslash."
            ) from error
