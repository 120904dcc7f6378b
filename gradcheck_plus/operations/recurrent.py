"""Recurrent layers. The time comes first: with the batch first, results would have other than standard strides.

Without grad mode an LSTM takes another kernel, whose last bits differ; so may all three on CUDA, where cuDNN is told whether it
trains, and keeps the result if so.
"""

from gradcheck_plus.operations.conditions import rank
from gradcheck_plus.operations.entry import Autocast, Operation


def _layer(name: str, module: str, *, low: bool, autocast: Autocast) -> Operation:
    return Operation(
        name, "recurrent", "{module}({a})[0]", setup=f"nn.{module}({{a.last}}, {{a.last}})", accepts=rank(3), low=low,
        autocast=autocast, saves_result=True, other_kernel=True, trainable=True, traits=("recurrent",), uses=4,
    )  # fmt: skip


OPERATIONS = (
    _layer("rnn", "RNN", low=True, autocast="free"),
    # oneDNN has it in low precision on some processors only.
    _layer("lstm", "LSTM", low=False, autocast="no"),
    _layer("gru", "GRU", low=True, autocast="free"),
)
