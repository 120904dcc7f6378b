"""The errors that users meet. Everything raised on purpose derives from `GradcheckPlusError`."""

from collections.abc import Iterable
from difflib import get_close_matches


class GradcheckPlusError(Exception):
    """Root of the errors of this package."""


class InvalidArgument(GradcheckPlusError, ValueError):  # noqa: N818 - named as Hypothesis names its own
    """A call, option or file that cannot be acted on.

    The message states the rule with ``name=value``, what was given, and what to write instead.
    """


class GradientMismatch(GradcheckPlusError, AssertionError):  # noqa: N818 - what pytest shows as a failed assertion
    """A subject left something else behind than plain autograd did.

    Common causes: a recompute that draws other random numbers, a gradient that is lost in a nested output, a leaf whose
    gradient is overwritten where it should be added to.
    """


class Inconclusive(GradcheckPlusError, AssertionError):  # noqa: N818 - a verdict, like the one above
    """A check that judged too little to say anything; its message is the reason."""


def said(error: BaseException) -> str:
    r"""Return what an exception says, as text that can be encoded.

    Example:
        >>> said(ValueError("caf\udce9"))
        'caf\\udce9'
    """
    try:
        return str(error).encode(errors="backslashreplace").decode()
    except Exception:
        return "(its message cannot be had)"


def first_line(error: BaseException) -> str:
    r"""Return the first line of what an exception says.

    Example:
        >>> first_line(ValueError("one\ntwo"))
        'one'
        >>> first_line(ValueError())
        'no message'
    """
    return (said(error).strip().splitlines() or ["no message"])[0]


def check_encodable(what: str, name: str) -> None:
    r"""Do nothing if a name can be written in JSON, which is UTF-8.

    Raises:
        InvalidArgument: it is that of a file, which may have any bytes.

    Example:
        >>> check_encodable("out", b"caf\xe9".decode(errors="surrogateescape"))
        Traceback (most recent call last):
        gradcheck_plus.errors.InvalidArgument: `out`='caf\udce9' is not UTF-8. Write another name.
    """
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"`{what}`={name!r} is not UTF-8. Write another name.") from error


def unknown(what: str, name: object, known: Iterable[str]) -> InvalidArgument:
    """Return the error for a name that is not in `known`, with the nearest ones.

    Example:
        >>> str(unknown("trait", "droput", ["dropout", "view"]))
        "`trait`='droput' is not known. Did you mean 'dropout'? `gradcheck-plus list traits` shows all 2."
    """
    names = sorted(known)
    near = get_close_matches(str(name), names, n=3)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    return InvalidArgument(f"`{what}`={name!r} is not known.{hint} `gradcheck-plus list {what}s` shows all {len(names)}.")
