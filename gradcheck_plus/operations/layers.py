"""The modules of `torch.nn` that have no family of their own, and functions like them."""

from gradcheck_plus.case import Spec
from gradcheck_plus.operations.conditions import (
    TWIN,
    P,
    always,
    at_least,
    both,
    even_last,
    filled_last,
    rank,
    shaped,
    weight,
    wide_last,
)
from gradcheck_plus.operations.tables import functions, layers

_FAMILY = "layers"


OPERATIONS = (
    *layers(
        _FAMILY, {
            "elu_module": "nn.ELU()",
            "celu_module": "nn.CELU()",
            "selu_module": "nn.SELU()",
            "silu_module": "nn.SiLU()",
            "mish_module": "nn.Mish()",
        },
        empty=True,
    ),
    *layers(
        _FAMILY, {
            "relu_module": "nn.ReLU()",
            "sigmoid_module": "nn.Sigmoid()",
        },
        elementwise=True, empty=True, saves_result=True,
    ),
    *layers(
        _FAMILY, {
            "relu6_module": "nn.ReLU6()",
            "leaky_relu_module": "nn.LeakyReLU(0.1)",
            "hardtanh_module": "nn.Hardtanh()",
            "hardsigmoid_module": "nn.Hardsigmoid()",
            "hardswish_module": "nn.Hardswish()",
            "hardshrink_module": "nn.Hardshrink()",
            "softshrink_module": "nn.Softshrink()",
            "logsigmoid_module": "nn.LogSigmoid()",
            "threshold_module": "nn.Threshold(0.1, 20.0)",
        },
        elementwise=True, empty=True,
    ),
    *layers(
        _FAMILY, {
            "softplus_module": "nn.Softplus()",
        },
        autocast="free", empty=True,
    ),
    *layers(
        _FAMILY, {
            "softsign_module": "nn.Softsign()",
            "tanhshrink_module": "nn.Tanhshrink()",
        },
        empty=True, uses=2,
    ),
    *layers(
        _FAMILY, {
            "identity_module": "nn.Identity()",
        },
        elementwise=True, empty=True, view=True,
    ),
    *layers(
        _FAMILY, {
            "glu_module": "nn.GLU(-1)",
        },
        accepts=even_last, results=shaped(lambda shape, k: (*shape[:-1], shape[-1] // 2)), empty=True,
    ),
    *layers(
        _FAMILY, {
            "softmax_module": "nn.Softmax(-1)",
            "log_softmax_module": "nn.LogSoftmax(-1)",
            "softmin_module": "nn.Softmin(-1)",
        },
        accepts=wide_last, autocast="free", empty=True, saves_result=True,
    ),
    *layers(
        _FAMILY, {
            "rms_norm_module": "nn.RMSNorm({a.last}, eps=1e-5)",
        },
        accepts=wide_last, autocast="free", empty=True, trainable=True, uses=2,
    ),
    *layers(
        _FAMILY, {
            "sequential_module": "nn.Sequential(nn.LayerNorm({a.last}), nn.ReLU())",
        },
        accepts=wide_last, autocast="free", empty=True, mixed=True, saves_result=True, trainable=True,
    ),
    *layers(
        _FAMILY, {
            "identity_list": "nn.Sequential(*nn.ModuleList([nn.Linear({a.last}, {a.last}), nn.Tanh()]))",
        },
        accepts=wide_last, autocast="low", empty=True, saves_result=True, trainable=True,
    ),
    *functions(
        _FAMILY, {
            "softmin": "F.softmin({a}, -1)",
            "masked_softmax": (
                "({a} + {a}.new_zeros({a.last}).index_fill(0, {a}.new_zeros(1, dtype=torch.int64), -9.0)).softmax(-1)"
            ),
        },
        accepts=wide_last, autocast="free", empty=True, saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "functional_layer_norm": "F.layer_norm({a}, ({a.last},))",
            "scaled_layer_norm": "F.layer_norm({a}, ({a.last},), {a}.new_ones({a.last}) * 2, {a}.new_ones({a.last}))",
        },
        accepts=wide_last, autocast="free", empty=True,
    ),
    *functions(
        _FAMILY, {
            "functional_normalize_one": "F.normalize({a}, p=1.0, dim=-1)",
        },
        accepts=wide_last, autocast="free", empty=True, uses=2,
    ),
    *layers(
        _FAMILY, {
            "softmax2d": "nn.Softmax2d()",
        },
        accepts=rank(4), autocast="free", elementwise=True, saves_result=True,
    ),
    *layers(
        _FAMILY, {
            "group_norm_module": "nn.GroupNorm(1, {a.channels})",
        },
        accepts=lambda a: a.rank in (2, 3, 4) and a.size // max(a.shape[0], 1) > 1, autocast="free", mixed=True,
        trainable=True,
    ),
    *layers(
        _FAMILY, {
            "instance_norm1d": "nn.InstanceNorm1d({a.channels})",
        },
        accepts=lambda a: a.rank == 3 and a.last > 1, empty=True, inner_view=always,
    ),
    *layers(
        _FAMILY, {
            "instance_norm1d_affine": "nn.InstanceNorm1d({a.channels}, affine=True)",
        },
        accepts=lambda a: a.rank == 3 and a.last > 1, inner_view=always, mixed=True, trainable=True,
    ),
    *layers(
        _FAMILY, {
            "instance_norm2d": "nn.InstanceNorm2d({a.channels}, affine=True)",
        },
        accepts=lambda a: a.rank == 4 and a.size // max(a.shape[0] * a.shape[1], 1) > 1, inner_view=always, mixed=True,
        trainable=True,
    ),
    *layers(
        _FAMILY, {
            "instance_norm3d": "nn.InstanceNorm3d({a.shape[0]}, affine=True)",
        },
        accepts=lambda a: a.rank == 4 and a.size // max(a.shape[0], 1) > 1,
        line="{module}({a}.unsqueeze(0)).squeeze(0)", inner_view=always, mixed=True, trainable=True,
    ),
    *layers(
        _FAMILY, {
            "batch_norm3d": "nn.BatchNorm3d({a.shape[0]})",
        },
        accepts=lambda a: a.rank == 4 and a.size // max(a.shape[0], 1) > 1,
        line="{module}({a}.unsqueeze(0)).squeeze(0)", traits=("batch-norm",), inner_view=always, mixed=True,
        trainable=True,
    ),
    *layers(
        _FAMILY, {
            "instance_norm_tracking": "nn.InstanceNorm1d({a.channels}, track_running_stats=True)",
        },
        accepts=lambda a: a.rank == 3 and a.last > 1, traits=("batch-norm",), empty=True, inner_view=always, mixed=True,
    ),
    *functions(
        _FAMILY, {
            "functional_batch_norm": "F.batch_norm({a}, None, None, training=True)",
        },
        accepts=lambda a: a.rank in (2, 3) and a.size // max(a.shape[1], 1) > 1,
    ),
    *layers(
        _FAMILY, {
            "local_response_norm_module": "nn.LocalResponseNorm(2)",
        },
        accepts=lambda a: a.rank == 3 or (a.rank == 4 and not a.low), autocast="free", empty=True, uses=3, view=True,
    ),
    *layers(
        _FAMILY, {
            "cross_map_lrn2d": "nn.CrossMapLRN2d(2)",
        },
        accepts=lambda a: a.rank == 4 and a.size > 0, elementwise=True, saves_result=True,
    ),
    *layers(
        _FAMILY, {
            "flatten_module": "nn.Flatten()",
        },
        accepts=at_least(2), results=shaped(lambda shape, k: (shape[0], Spec(shape[1:]).size)), empty=True, view=True,
    ),
    *layers(
        _FAMILY, {
            "unflatten_module": "nn.Unflatten(-1, (2, {a.last} // 2))",
        },
        accepts=both(rank(1, 2, 3), even_last), results=shaped(lambda shape, k: (*shape[:-1], 2, shape[-1] // 2)),
        empty=True, view=True,
    ),
    *layers(
        _FAMILY, {
            "cosine_similarity_module": "nn.CosineSimilarity(-1)",
        },
        accepts=wide_last, line="{module}({a}, {a}.cos())", results=shaped(lambda shape, k: shape[:-1]),
        autocast="free", empty=True, uses=4,
    ),
    *layers(
        _FAMILY, {
            "pairwise_distance_module": "nn.PairwiseDistance()",
        },
        accepts=both(rank(1,2), wide_last), partners=(TWIN,), line="{module}({a}, {b} + 4.5)",
        results=shaped(lambda shape, k: shape[:-1]), autocast="free", empty=True, saves_result=True,
    ),
    *layers(
        _FAMILY, {
            "parameter_dict": (
                "nn.ParameterDict({{'weight': nn.Parameter(torch.empty({a.last}, {a.last})), 'bias': "
                "nn.Parameter(torch.empty({a.last}))}})"
            ),
        },
        accepts=filled_last, line="({a} @ {module}['weight'] + {module}['bias']) * 1", empty=True, trainable=True,
    ),
    *layers(
        _FAMILY, {
            "parameter_list": "nn.ParameterList([nn.Parameter(torch.empty({a.last})), nn.Parameter(torch.empty({a.last}))])",
        },
        accepts=filled_last, line="{a} * {module}[0] + {module}[1]", empty=True, trainable=True,
    ),
    *layers(
        _FAMILY, {
            "module_list": "nn.ModuleList([nn.Linear({a.last}, 3), nn.Linear(3, {a.last})])",
        },
        accepts=filled_last, line="{module}[1]({module}[0]({a}).tanh())", autocast="low", empty=True, inner_view=always,
        trainable=True,
    ),
    *layers(
        _FAMILY, {
            "called_twice": "nn.Linear({a.last}, {a.last})",
        },
        accepts=filled_last, line="{module}({module}({a}).tanh())", autocast="low", empty=True, inner_view=always,
        trainable=True, uses=2,
    ),
    *layers(
        _FAMILY, {
            "called_side_by_side": "nn.Linear({a.last}, {a.last})",
        },
        accepts=filled_last, line="{module}({a}).tanh() + {module}({a}).sin()", autocast="low", empty=True,
        trainable=True, uses=2,
    ),
    *layers(
        _FAMILY, {
            "weight_norm_module": "nn.utils.parametrizations.weight_norm(nn.Linear({a.last}, {a.last}))",
        },
        accepts=filled_last, traits=("nested-module",), autocast="low", empty=True, inner_view=always,
        other_kernel=True, trainable=True,
    ),
    *layers(
        _FAMILY, {
            "dropout3d": "nn.Dropout3d({p})",
        },
        inner_view=always,
        traits=("dropout",), attributes=P, accepts=rank(4), elementwise=True, view=True,
    ),
    *layers(
        _FAMILY, {
            "feature_alpha_dropout_module": "nn.FeatureAlphaDropout({p})",
        },
        traits=("dropout",), attributes=P, accepts=at_least(2), elementwise=True, empty=True, view=True,
    ),
    *layers(
        _FAMILY, {
            "rrelu_module": "nn.RReLU()",
        },
        traits=("random-activation",), accepts=lambda a: a.dtype not in ("float16","float"), elementwise=True,
        empty=True,
    ),
    *functions(
        _FAMILY, {
            "functional_alpha_dropout": "F.alpha_dropout({a}, {p}, training=self.training)",
        },
        traits=("dropout",), attributes=P, elementwise=True, empty=True, view=True,
    ),
    *functions(
        _FAMILY, {
            "functional_dropout1d": "F.dropout1d({a}, {p}, training=self.training)",
        },
        inner_view=rank(2),
        traits=("dropout",), attributes=P, accepts=rank(2, 3), elementwise=True, empty=True, view=True,
    ),
    *functions(
        _FAMILY, {
            "functional_dropout2d": "F.dropout2d({a}, {p}, training=self.training)",
        },
        traits=("dropout",), attributes=P, accepts=rank(4), elementwise=True, view=True,
    ),
    *functions(
        _FAMILY, {
            "functional_prelu": "F.prelu({a}, {b})",
        },
        partners=(weight(lambda a: (1,)),),
        autocast="low", empty=True,
    ),
    *functions(
        _FAMILY, {
            "functional_dropout3d": "F.dropout3d({a}, {p}, training=self.training)",
        },
        inner_view=always, traits=("dropout",), attributes=P, accepts=rank(4), elementwise=True, view=True,
    ),
)  # fmt: skip
