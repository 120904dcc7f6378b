"""Attention, as a function, as a module and as a whole layer."""

from gradcheck_plus.case import Spec
from gradcheck_plus.operations.conditions import always, both, even_last, one_of, rank
from gradcheck_plus.operations.entry import Operation
from gradcheck_plus.operations.tables import functions, layers

_FAMILY = "attention"


def _small(a: Spec) -> bool:
    return a.last <= 4


# The layers take the sequence first: with the batch first they have another kernel for inference.
OPERATIONS = (
    Operation(
        "attention", _FAMILY, "F.scaled_dot_product_attention({a}, {a}, {a})", accepts=rank(3, 4), autocast="low", empty=True,
        uses=3, saves_result=True,
    ),
    Operation(
        "causal_attention", _FAMILY, "F.scaled_dot_product_attention({a}, {a}, {a}, is_causal=True)", accepts=rank(3, 4),
        autocast="low", empty=True, uses=3, saves_result=True,
    ),
    Operation(
        "attention_dropout", _FAMILY, "F.scaled_dot_product_attention({a}, {a}, {a}, dropout_p={p} if self.training else 0.0)",
        accepts=rank(3, 4), attributes={"p": one_of(0.5, 0.2)}, autocast="low", empty=True, uses=3,
        saves_result=True, traits=("dropout",),
    ),
    Operation(
        "multi_head", _FAMILY, "{module}({a}, {a}, {a}, need_weights=False)[0]", accepts=both(rank(3), even_last, _small),
        setup="nn.MultiheadAttention({a.last}, 2)", autocast="low", empty=True, trainable=True, traits=("nested-module",),
        inner_view=always,
    ),
    Operation(
        "encoder_layer", _FAMILY, "{module}({a})", accepts=both(rank(3), even_last, _small), autocast="free", empty=True,
        setup="nn.TransformerEncoderLayer({a.last}, 2, 4, dropout={p})", attributes={"p": one_of(0.5, 0.2)},
        uses=2, trainable=True, traits=("nested-module", "dropout"),
    ),
    *layers(
        _FAMILY, {
            "decoder_layer": "nn.TransformerDecoderLayer({a.last}, 2, 4, dropout=0.0)",
            "decoder": "nn.TransformerDecoder(nn.TransformerDecoderLayer({a.last}, 2, 4, dropout=0.0), 1)",
        },
        traits=("nested-module",), accepts=both(rank(3), even_last, lambda a: a.last <= 4), line="{module}({a}, {a})",
        empty=True, trainable=True, uses=3,
    ),
    *layers(
        _FAMILY, {
            "transformer": (
                "nn.Transformer({a.last}, 2, "
                "custom_encoder=nn.TransformerEncoder(nn.TransformerEncoderLayer({a.last}, 2, 4, dropout=0.0), 1, "
                "enable_nested_tensor=False), num_decoder_layers=1, dim_feedforward=4, dropout=0.0)"
            ),
        },
        traits=("nested-module",), accepts=both(rank(3), even_last, lambda a: a.last <= 4), line="{module}({a}, {a})",
        empty=True, trainable=True, uses=4,
    ),
    *layers(
        _FAMILY, {
            "encoder": (
                "nn.TransformerEncoder(nn.TransformerEncoderLayer({a.last}, 2, 4, dropout=0.0), 1, "
                "enable_nested_tensor=False)"
            ),
        },
        traits=("nested-module",), accepts=both(rank(3), even_last, lambda a: a.last <= 4), empty=True, trainable=True,
        uses=2,
    ),
    *layers(
        _FAMILY, {
            "multi_head_weights": "nn.MultiheadAttention({a.last}, 2)",
        },
        traits=("nested-module",), accepts=both(rank(3), even_last, lambda a: a.last <= 4),
        line="(lambda y, w: y + w.sum())(*{module}({a}, {a}, {a}))", autocast="low", empty=True, trainable=True,
    ),
    *functions(
        _FAMILY, {
            "scaled_attention": "F.scaled_dot_product_attention({a}, {a} * 2, {a}, scale=0.5)",
        },
        accepts=rank(3, 4), autocast="low", empty=True, saves_result=True, uses=3,
    ),
    *functions(
        _FAMILY, {
            "math_attention": "({a} @ {a}.mT / 2).softmax(-1) @ {a}",
        },
        accepts=rank(3, 4), autocast="low", empty=True, uses=3,
    ),
)  # fmt: skip
