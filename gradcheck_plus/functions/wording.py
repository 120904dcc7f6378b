"""What is wrong, in a sentence: which gradient, where, what it is and what it should be, and what that looks like."""

from collections.abc import Sequence

import torch

from gradcheck_plus.functions.support import wide
from gradcheck_plus.mismatch import Mismatch, MismatchKind

#: Elements that a message shows.
_SHOWN = 3


def number(value: float | complex | None) -> str:
    """Return a number as a person writes it.

    Example:
        >>> number(0.5), number(None), number(1 / 3)
        ('0.5', 'None', '0.333333')
    """
    if value is None:
        return "None"
    return f"{value.real:.6g}{value.imag:+.6g}j" if isinstance(value, complex) else f"{value:.6g}"


def numbers(values: Sequence[float | complex | None]) -> str:
    """Return some numbers; one alone if all are the same."""
    said = [number(v) for v in values]
    if len(said) > 1 and len(set(said)) == 1:
        return f"{said[0]} {'for both' if len(said) == 2 else 'each'}"
    return ", ".join(said)


def gradient_text(
    name: str, got: torch.Tensor | None, expected: torch.Tensor | None, when: str, allowed: torch.Tensor | float = 0.0
) -> str:
    """Return the sentence about one gradient that is wrong."""
    where = f" when {when}" if when else ""
    if got is None or expected is None:
        return f"gradient of `{name}` is wrong{where}: got {_presence(got)}, expected {_presence(expected)}"
    if got.shape != expected.shape:
        return f"gradient of `{name}` is wrong{where}: got shape {tuple(got.shape)}, expected {tuple(expected.shape)}"
    a, b = wide(got.detach()), wide(expected.detach())
    wrong = differing(a, b, allowed)
    indices = wrong.nonzero().tolist()
    shown = indices[:_SHOWN]
    places = f"at {', '.join(str(i) for i in shown)}" if got.dim() and len(indices) < got.numel() else ""
    count = f" ({len(indices)} of {got.numel()} elements)" if len(indices) > len(shown) else ""
    values = [[t[tuple(i)].item() for i in shown] for t in (a, b)]
    text = f"gradient of `{name}` is wrong{where}: got {numbers(values[0])}, expected {numbers(values[1])}"
    said = f"{text}{' ' if places else ''}{places}{count}"
    looks = _looks(a[wrong], b[wrong])
    return f"{said}; {looks}" if looks else said


def _presence(t: torch.Tensor | None) -> str:
    return "None" if t is None else "a tensor"


def differing(got: torch.Tensor, expected: torch.Tensor, allowed: torch.Tensor | float) -> torch.Tensor:
    """Return which elements differ by more than is allowed; those whose expected value is not finite are left out."""
    far = (got - expected).abs()
    return ((far > allowed) | (far != far)) & expected.isfinite()


def _looks(got: torch.Tensor, expected: torch.Tensor) -> str:
    """Return what the wrong elements have in common, if it is something simple."""
    if not bool(got.isfinite().all()):
        return "it is not finite"
    if not got.abs().sum().item():
        return "it is lost"
    if expected.numel() > 1 and bool((expected != 0).all()):
        ratio = got / expected
        first = ratio.reshape(-1)[0]
        if bool(((ratio - first).abs() <= 1e-4 * first.abs()).all()):
            factor = first.item()
            return "its sign is wrong" if abs(factor + 1) < 1e-6 else f"it is {number(factor)} times what it should be"
    return ""


def mismatch(
    kind: MismatchKind, check: str, leaf: str, said: str, *, expected: str = "", got: str = "", error: str = "", rank: int = 0
) -> Mismatch:
    """Return a mismatch that says in a sentence what is wrong."""
    return Mismatch(kind, check, leaf, expected, got, error, said=said, rank=rank)
