"""Modules that change while they run, and modules whose parameters are tied inside."""

from gradcheck_plus.operations.conditions import always, filled_last, index, shaped
from gradcheck_plus.operations.tables import layers

_FAMILY = "state"


OPERATIONS = (
    *layers(
        _FAMILY, {
            "spectral_norm": "nn.utils.parametrizations.spectral_norm(nn.Linear({a.last}, {n}))",
        },
        accepts=filled_last, attributes={"n": lambda a: (a.last, 2)},
        results=shaped(lambda shape, k: (*shape[:-1], index(k, "n"))), traits=("state-in-result",), autocast="low",
        empty=True, inner_view=always, low=False, mixed=True, other_kernel=True, trainable=True, uses=2,
    ),
    *layers(
        _FAMILY, {
            "counting": "Counting()",
        },
        traits=("counted-calls",), empty=True, mixed=True, trainable=True,
    ),
    *layers(
        _FAMILY, {
            "tied_submodules": "Tied({a.last})",
        },
        accepts=filled_last, traits=("nested-module",), autocast="low", empty=True, trainable=True,
        uses=2,
    ),
)  # fmt: skip
