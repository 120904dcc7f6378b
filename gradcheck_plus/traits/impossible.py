"""The pairs of traits that no case can have, each with its reason. A campaign does not miss them."""

from functools import cache

_SCHEDULE = "a case has one schedule: one forward, a second forward and backward, a second forward first, or a second backward"
_CHANGED = "a parameter is changed between the only forward and its backward"
_HOOK = "torch's full backward hooks see tensors in a bare output or a flat tuple only"
_MODE = "in evaluation mode nothing is drawn, and no statistics or other state are taken"
_PRECISION = "the precision of a program is one of these"
_CAST = "under autocast a program casts nothing itself"
_WHOLE = "a float64 program has no value that is less precise"

#: Groups of traits, of which none of the first can meet one of the second.
IMPOSSIBLE: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (("second-backward",), ("accumulation", "two-forwards", "reused-input"), _SCHEDULE),
    (("parameter-changed",), ("accumulation", "second-backward", "two-forwards", "reused-input"), _CHANGED),
    (("reused-input",), ("two-forwards",), "the second forward overwrites inputs that the first backward still needs"),
    (("reused-input",), ("reordered-weights",), "the second forward overwrites inputs that a delayed pass still needs"),
    (("backward-hook",), ("nested-output", "namedtuple-output", "dataclass-output", "reversed-keys"), _HOOK),
    (("eval",), ("dropout", "random", "random-activation", "batch-norm", "state-in-result"), _MODE),
    (("mixed-requires-grad",), ("no-grad-input",), "some inputs require grad, or none does"),
    (("no-grad-input",), ("non-leaf-input",), "what is made of a leaf requires grad"),
    (("float64",), ("autocast-bfloat16", "autocast-float16"), _PRECISION),
    (("autocast-bfloat16",), ("autocast-float16",), _PRECISION),
    (("autocast-bfloat16", "autocast-float16"), ("low-precision",), _CAST),
    (("float64",), ("bfloat16-input", "low-precision"), _WHOLE),
    (("bfloat16-input",), ("autocast-float16",), "no operation takes both"),
)


def impossible(a: str, b: str) -> str:
    """Return why no case has both traits; empty if one can.

    Example:
        >>> impossible("eval", "dropout")
        'in evaluation mode nothing is drawn, and no statistics or other state are taken'
        >>> impossible("eval", "view")
        ''
    """
    return _reasons().get(frozenset((a, b)), "")


@cache
def _reasons() -> dict[frozenset[str], str]:
    return {frozenset((a, b)): reason for some, others, reason in IMPOSSIBLE for a in some for b in others}
