"""Convolution, pooling, padding and resampling."""

from gradcheck_plus.case.program import Shape
from gradcheck_plus.operations.conditions import always, at_least, both, even_last, index, one_of, shaped
from gradcheck_plus.operations.entry import Accepts, Attributes, Operation

_FAMILY = "convolution"


def _channels(shape: Shape, k: Attributes) -> Shape:
    return (shape[0], index(k, "n"), *shape[2:])


def _images(*ranks: int) -> Accepts:
    """Channels of something. Only a batch of them may be empty."""
    return lambda a: a.rank in ranks and 0 not in a.shape[a.rank > 2 :]


def _half(shape: Shape, _: Attributes) -> Shape:
    return (*shape[:-1], shape[-1] // 2)


OPERATIONS = (
    Operation(
        "conv1d", _FAMILY, "{module}({a})", setup="nn.Conv1d({a.channels}, {n}, 3, padding=1)", accepts=_images(3),
        attributes={"n": lambda a: (a.channels, 2)}, results=shaped(_channels), autocast="low", trainable=True, empty=True,
    ),
    Operation(
        "conv2d", _FAMILY, "{module}({a})", setup="nn.Conv2d({a.channels}, {n}, 1)", accepts=_images(4), trainable=True,
        attributes={"n": lambda a: (a.channels, 2)}, results=shaped(_channels), autocast="low", empty=True,
    ),
    Operation(
        "conv_transpose1d", _FAMILY, "{module}({a})", setup="nn.ConvTranspose1d({a.channels}, 2, 2)", accepts=_images(3),
        results=shaped(lambda shape, k: (shape[0], 2, shape[2] + 1)), autocast="low", trainable=True, empty=True,
    ),
    Operation(
        "avg_pool1d", _FAMILY, "F.avg_pool1d({a}, 2)", accepts=both(_images(2, 3), even_last), empty=True,
        results=shaped(_half), inner_view=always,
    ),
    Operation(
        "max_pool1d", _FAMILY, "F.max_pool1d({a}, 2)", accepts=both(_images(2, 3), even_last), empty=True,
        results=shaped(_half), inner_view=always,
    ),
    Operation(
        "adaptive_avg_pool1d", _FAMILY, "F.adaptive_avg_pool1d({a}, 2)", accepts=_images(2, 3), empty=True,
        results=shaped(lambda shape, k: (*shape[:-1], 2)), inner_view=always,
    ),
    Operation(
        "interpolate", _FAMILY, "F.interpolate({a}, scale_factor=2.0, mode={mode})", accepts=_images(3), autocast="free",
        attributes={"mode": one_of("nearest", "linear")}, results=shaped(lambda shape, k: (*shape[:-1], shape[-1] * 2)),
        empty=True,
    ),
    Operation(
        "pad", _FAMILY, "F.pad({a}, (1, 0))", accepts=at_least(1), empty=True,
        results=shaped(lambda shape, k: (*shape[:-1], shape[-1] + 1)),
    ),
)  # fmt: skip
