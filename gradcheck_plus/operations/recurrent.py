"""Recurrent layers. The time comes first: with the batch first, results would have other than standard strides.

Without grad mode an LSTM takes another kernel, whose last bits differ; so may all three on CUDA, where cuDNN is told whether it
trains, and keeps the result if so.
"""

from gradcheck_plus.operations.conditions import ROWS, rank, shaped
from gradcheck_plus.operations.entry import Autocast, Operation
from gradcheck_plus.operations.tables import layers

_FAMILY = "recurrent"


def _layer(name: str, module: str, *, low: bool, autocast: Autocast) -> Operation:
    return Operation(
        name, _FAMILY, "{module}({a})[0]", setup=f"nn.{module}({{a.last}}, {{a.last}})", accepts=rank(3), low=low,
        autocast=autocast, saves_result=True, other_kernel=True, trainable=True, traits=("recurrent",), uses=4,
    )  # fmt: skip


OPERATIONS = (
    _layer("rnn", "RNN", low=True, autocast="free"),
    # oneDNN has it in low precision on some processors only.
    _layer("lstm", "LSTM", low=False, autocast="no"),
    _layer("gru", "GRU", low=True, autocast="free"),
    *layers(
        _FAMILY, {
            "rnn_cell": "nn.RNNCell({a.last}, {a.last})",
        },
        traits=("recurrent",), accepts=ROWS, autocast="low", empty=True, saves_result=True, trainable=True,
    ),
    *layers(
        _FAMILY, {
            "gru_cell": "nn.GRUCell({a.last}, {a.last})",
        },
        traits=("recurrent",), accepts=ROWS, empty=True, trainable=True,
    ),
    *layers(
        _FAMILY, {
            "lstm_cell": "nn.LSTMCell({a.last}, {a.last})",
        },
        traits=("recurrent",), accepts=ROWS, line="{module}({a})[1]", empty=True, trainable=True,
    ),
    *layers(
        _FAMILY, {
            "rnn_relu": 'nn.RNN({a.last}, {a.last}, nonlinearity="relu")',
        },
        traits=("recurrent",), accepts=rank(3), line="{module}({a})[0]", autocast="low", trainable=True, uses=2,
    ),
    *layers(
        _FAMILY, {
            "gru_two": "nn.GRU({a.last}, {a.last}, 2)",
        },
        traits=("recurrent",), accepts=rank(3), line="{module}({a})[0]", trainable=True, uses=2,
    ),
    *layers(
        _FAMILY, {
            "rnn_both_ways": "nn.RNN({a.last}, {a.last}, bidirectional=True)",
        },
        traits=("recurrent",), accepts=rank(3), results=shaped(lambda shape, k: (*shape[:2], 2 * shape[-1])),
        line="{module}({a})[0]", autocast="low", trainable=True, uses=2,
    ),
)  # fmt: skip
