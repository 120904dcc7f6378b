"""Pooling in one, two and three dimensions."""

from collections.abc import Callable, Sequence

from gradcheck_plus.case import Spec
from gradcheck_plus.operations.conditions import always, both, images, shaped
from gradcheck_plus.operations.entry import Accepts, Attributes, Results
from gradcheck_plus.operations.tables import functions, layers

_FAMILY = "pooling"


def _even(n: int) -> Accepts:
    """Accept values whose last `n` dimensions have an even size."""
    return lambda a: all(size > 0 and size % 2 == 0 for size in a.shape[-n:])


def _half(n: int) -> Callable[[Sequence[Spec], Attributes], Results]:
    return shaped(lambda shape, _: (*shape[:-n], *(size // 2 for size in shape[-n:])))


def _to(n: int, size: int) -> Callable[[Sequence[Spec], Attributes], Results]:
    return shaped(lambda shape, _: (*shape[:-n], *(size,) * n))


def _several(n: int) -> Accepts:
    """Accept values whose last `n` dimensions have several elements."""
    return lambda a: all(size > 1 for size in a.shape[-n:])


OPERATIONS = (
    *functions(
        _FAMILY, {
            "functional_avg_pool1d": "F.avg_pool1d({a}, 2)",
            "functional_max_pool1d": "F.max_pool1d({a}, 2)",
            "max_pool1d_with_indices": "F.max_pool1d({a}, 2, return_indices=True)[0]",
        },
        accepts=both(images(2, 3), _even(1)), results=_half(1), empty=True, inner_view=always,
    ),
    *functions(
        _FAMILY, {
            "lp_pool1d": "F.lp_pool1d({a}.abs() + 0.5, 2, 2)",
        },
        accepts=both(images(2, 3), _even(1)), results=_half(1), autocast="free", empty=True,
    ),
    *layers(
        _FAMILY, {
            "avg_pool1d_module": "nn.AvgPool1d(2)",
            "max_pool1d_module": "nn.MaxPool1d(2)",
        },
        accepts=both(images(2, 3), _even(1)), results=_half(1), empty=True, inner_view=always,
    ),
    *layers(
        _FAMILY, {
            "lp_pool1d_module": "nn.LPPool1d(2, 2)",
        },
        accepts=both(images(2, 3), _even(1)), results=_half(1), line="{module}({a}.abs() + 0.5)", autocast="free",
        empty=True,
    ),
    *functions(
        _FAMILY, {
            "functional_adaptive_avg_pool1d": "F.adaptive_avg_pool1d({a}, 2)",
            "functional_adaptive_max_pool1d": "F.adaptive_max_pool1d({a}, 2)",
        },
        accepts=images(2, 3), results=_to(1, 2), empty=True, inner_view=always,
    ),
    *layers(
        _FAMILY, {
            "adaptive_avg_pool1d_module": "nn.AdaptiveAvgPool1d(2)",
            "adaptive_max_pool1d_module": "nn.AdaptiveMaxPool1d(2)",
        },
        accepts=images(2, 3), results=_to(1, 2), empty=True, inner_view=always,
    ),
    *layers(
        _FAMILY, {
            "max_unpool1d_module": "nn.MaxUnpool1d(2)",
        },
        accepts=both(images(2, 3), _even(1)), line="{module}(*F.max_pool1d({a}, 2, return_indices=True))",
        autocast="free", elementwise=True, empty=True, inner_view=always,
    ),
    *functions(
        _FAMILY, {
            "functional_max_unpool1d": "F.max_unpool1d(*F.max_pool1d({a}, 2, return_indices=True), 2)",
        },
        accepts=both(images(2, 3), _even(1)), autocast="free", elementwise=True, empty=True, inner_view=always,
    ),
    *functions(
        _FAMILY, {
            "functional_avg_pool2d": "F.avg_pool2d({a}, 2)",
            "functional_max_pool2d": "F.max_pool2d({a}, 2)",
            "max_pool2d_with_indices": "F.max_pool2d({a}, 2, return_indices=True)[0]",
        },
        accepts=both(images(3, 4), _even(2)), results=_half(2),
    ),
    *functions(
        _FAMILY, {
            "lp_pool2d": "F.lp_pool2d({a}.abs() + 0.5, 2, 2)",
        },
        accepts=both(images(3, 4), _even(2)), results=_half(2), autocast="free",
    ),
    *layers(
        _FAMILY, {
            "avg_pool2d_module": "nn.AvgPool2d(2)",
            "max_pool2d_module": "nn.MaxPool2d(2)",
        },
        accepts=both(images(3, 4), _even(2)), results=_half(2),
    ),
    *layers(
        _FAMILY, {
            "lp_pool2d_module": "nn.LPPool2d(2, 2)",
        },
        accepts=both(images(3, 4), _even(2)), results=_half(2), line="{module}({a}.abs() + 0.5)", autocast="free",
    ),
    *functions(
        _FAMILY, {
            "functional_adaptive_avg_pool2d": "F.adaptive_avg_pool2d({a}, 2)",
            "functional_adaptive_max_pool2d": "F.adaptive_max_pool2d({a}, 2)",
        },
        accepts=images(3, 4), results=_to(2, 2), empty=True,
    ),
    *layers(
        _FAMILY, {
            "adaptive_avg_pool2d_module": "nn.AdaptiveAvgPool2d(2)",
            "adaptive_max_pool2d_module": "nn.AdaptiveMaxPool2d(2)",
        },
        accepts=images(3, 4), results=_to(2, 2), empty=True,
    ),
    *layers(
        _FAMILY, {
            "max_unpool2d_module": "nn.MaxUnpool2d(2)",
        },
        accepts=both(images(3, 4), _even(2)), line="{module}(*F.max_pool2d({a}, 2, return_indices=True))",
        autocast="free", elementwise=True,
    ),
    *functions(
        _FAMILY, {
            "functional_max_unpool2d": "F.max_unpool2d(*F.max_pool2d({a}, 2, return_indices=True), 2)",
        },
        accepts=both(images(3, 4), _even(2)), autocast="free", elementwise=True,
    ),
    *functions(
        _FAMILY, {
            "functional_fractional_max_pool2d": "F.fractional_max_pool2d({a}, 2, output_size=1)",
        },
        traits=("random",), accepts=both(images(3, 4), _several(2)), results=_to(2, 1), autocast="free", empty=True,
    ),
    *layers(
        _FAMILY, {
            "fractional_max_pool2d_module": "nn.FractionalMaxPool2d(2, output_size=1)",
        },
        traits=("random",), accepts=both(images(3, 4), _several(2)), results=_to(2, 1), autocast="free", empty=True,
    ),
    *functions(
        _FAMILY, {
            "functional_avg_pool3d": "F.avg_pool3d({a}, 2)",
        },
        accepts=both(images(4), _even(3)), results=_half(3), elementwise=True, low=False,
    ),
    *functions(
        _FAMILY, {
            "functional_max_pool3d": "F.max_pool3d({a}, 2)",
            "max_pool3d_with_indices": "F.max_pool3d({a}, 2, return_indices=True)[0]",
        },
        accepts=both(images(4), _even(3)), results=_half(3), elementwise=True,
    ),
    *functions(
        _FAMILY, {
            "lp_pool3d": "F.lp_pool3d({a}.abs() + 0.5, 2, 2)",
        },
        accepts=both(images(4), _even(3)), results=_half(3), autocast="free", elementwise=True, low=False,
    ),
    *layers(
        _FAMILY, {
            "avg_pool3d_module": "nn.AvgPool3d(2)",
        },
        accepts=both(images(4), _even(3)), results=_half(3), elementwise=True, low=False,
    ),
    *layers(
        _FAMILY, {
            "max_pool3d_module": "nn.MaxPool3d(2)",
        },
        accepts=both(images(4), _even(3)), results=_half(3), elementwise=True,
    ),
    *layers(
        _FAMILY, {
            "lp_pool3d_module": "nn.LPPool3d(2, 2)",
        },
        accepts=both(images(4), _even(3)), results=_half(3), line="{module}({a}.abs() + 0.5)", autocast="free",
        elementwise=True, low=False,
    ),
    *functions(
        _FAMILY, {
            "functional_adaptive_avg_pool3d": "F.adaptive_avg_pool3d({a}, 2)",
            "functional_adaptive_max_pool3d": "F.adaptive_max_pool3d({a}, 2)",
        },
        accepts=images(4), results=_to(3, 2), autocast="free", elementwise=True,
    ),
    *layers(
        _FAMILY, {
            "adaptive_avg_pool3d_module": "nn.AdaptiveAvgPool3d(2)",
            "adaptive_max_pool3d_module": "nn.AdaptiveMaxPool3d(2)",
        },
        accepts=images(4), results=_to(3, 2), autocast="free", elementwise=True,
    ),
    *layers(
        _FAMILY, {
            "max_unpool3d_module": "nn.MaxUnpool3d(2)",
        },
        accepts=both(images(4), _even(3)), line="{module}(*F.max_pool3d({a}, 2, return_indices=True))",
        elementwise=True,
    ),
    *functions(
        _FAMILY, {
            "functional_max_unpool3d": "F.max_unpool3d(*F.max_pool3d({a}, 2, return_indices=True), 2)",
        },
        accepts=both(images(4), _even(3)), elementwise=True,
    ),
    *functions(
        _FAMILY, {
            "functional_fractional_max_pool3d": "F.fractional_max_pool3d({a}, (1, 1, 1), output_size=1)",
        },
        traits=("random",), accepts=both(images(4), _several(3)), results=_to(3, 1), autocast="free", elementwise=True,
    ),
    *layers(
        _FAMILY, {
            "fractional_max_pool3d_module": "nn.FractionalMaxPool3d((1, 1, 1), output_size=1)",
        },
        traits=("random",), accepts=both(images(4), _several(3)), results=_to(3, 1), autocast="free", elementwise=True,
    ),
)  # fmt: skip
