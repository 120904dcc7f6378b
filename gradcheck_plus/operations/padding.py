"""Padding in one, two and three dimensions, each of the last one."""

from gradcheck_plus.operations.conditions import both, images, shaped
from gradcheck_plus.operations.entry import Accepts
from gradcheck_plus.operations.tables import functions, layers

_FAMILY = "padding"


def _several(n: int) -> Accepts:
    """Accept values whose last `n` dimensions have several elements."""
    return lambda a: all(size > 1 for size in a.shape[-n:])


_wider = shaped(lambda shape, _: (*shape[:-1], shape[-1] + 1))


#: Circular padding is written into the parts of what it returns.
_WRITTEN = ("in-place-view",)

OPERATIONS = (
    *layers(
        _FAMILY, {
            "reflection_pad1d": "nn.ReflectionPad1d((1, 0))",
            "replication_pad1d": "nn.ReplicationPad1d((1, 0))",
        },
        accepts=both(images(2, 3), _several(1)), results=_wider, autocast="free", empty=True,
    ),
    *layers(
        _FAMILY, {
            "constant_pad1d": "nn.ConstantPad1d((1, 0), 0.5)",
            "zero_pad1d": "nn.ZeroPad1d((1, 0))",
        },
        accepts=both(images(2, 3), _several(1)), results=_wider, empty=True,
    ),
    *functions(
        _FAMILY, {
            "functional_reflect_pad1d": 'F.pad({a}, (1, 0), mode="reflect")',
            "functional_replicate_pad1d": 'F.pad({a}, (1, 0), mode="replicate")',
        },
        accepts=both(images(2, 3), _several(1)), results=_wider, autocast="free", empty=True,
    ),
    *layers(
        _FAMILY, {
            "reflection_pad2d": "nn.ReflectionPad2d((1, 0, 0, 0))",
            "replication_pad2d": "nn.ReplicationPad2d((1, 0, 0, 0))",
        },
        accepts=both(images(3, 4), _several(2)), results=_wider, autocast="free",
    ),
    *layers(
        _FAMILY, {
            "constant_pad2d": "nn.ConstantPad2d((1, 0, 0, 0), 0.5)",
            "zero_pad2d": "nn.ZeroPad2d((1, 0, 0, 0))",
        },
        accepts=both(images(3, 4), _several(2)), results=_wider, empty=True,
    ),
    *functions(
        _FAMILY, {
            "functional_reflect_pad2d": 'F.pad({a}, (1, 0, 0, 0), mode="reflect")',
            "functional_replicate_pad2d": 'F.pad({a}, (1, 0, 0, 0), mode="replicate")',
        },
        accepts=both(images(3, 4), _several(2)), results=_wider, autocast="free",
    ),
    *layers(
        _FAMILY, {
            "reflection_pad3d": "nn.ReflectionPad3d((1, 0, 0, 0, 0, 0))",
            "constant_pad3d": "nn.ConstantPad3d((1, 0, 0, 0, 0, 0), 0.5)",
            "zero_pad3d": "nn.ZeroPad3d((1, 0, 0, 0, 0, 0))",
        },
        accepts=both(images(4), _several(3)), results=_wider, elementwise=True,
    ),
    *layers(
        _FAMILY, {
            "replication_pad3d": "nn.ReplicationPad3d((1, 0, 0, 0, 0, 0))",
        },
        accepts=both(images(4), _several(3)), results=_wider, autocast="free", elementwise=True,
    ),
    *functions(
        _FAMILY, {
            "functional_reflect_pad3d": 'F.pad({a}, (1, 0, 0, 0, 0, 0), mode="reflect")',
        },
        accepts=both(images(4), _several(3)), results=_wider, elementwise=True,
    ),
    *functions(
        _FAMILY, {
            "functional_replicate_pad3d": 'F.pad({a}, (1, 0, 0, 0, 0, 0), mode="replicate")',
        },
        accepts=both(images(4), _several(3)), results=_wider, autocast="free", elementwise=True,
    ),
    *layers(
        _FAMILY, {
            "circular_pad1d": "nn.CircularPad1d((1, 0))",
        },
        accepts=both(images(2, 3), _several(1)), results=_wider, empty=True, traits=_WRITTEN,
    ),
    *layers(
        _FAMILY, {
            "circular_pad2d": "nn.CircularPad2d((1, 0, 0, 0))",
        },
        accepts=both(images(3, 4), _several(2)), results=_wider, empty=True, traits=_WRITTEN,
    ),
    *layers(
        _FAMILY, {
            "circular_pad3d": "nn.CircularPad3d((1, 0, 0, 0, 0, 0))",
        },
        accepts=both(images(4), _several(3)), results=_wider, empty=True, traits=_WRITTEN,
    ),
    *functions(
        _FAMILY, {
            "functional_circular_pad1d": 'F.pad({a}, (1, 0), mode="circular")',
        },
        accepts=both(images(2, 3), _several(1)), results=_wider, empty=True, traits=_WRITTEN,
    ),
    *functions(
        _FAMILY, {
            "functional_circular_pad2d": 'F.pad({a}, (1, 0, 0, 0), mode="circular")',
        },
        accepts=both(images(3, 4), _several(2)), results=_wider, empty=True, traits=_WRITTEN,
    ),
    *functions(
        _FAMILY, {
            "functional_circular_pad3d": 'F.pad({a}, (1, 0, 0, 0, 0, 0), mode="circular")',
        },
        accepts=both(images(4), _several(3)), results=_wider, empty=True, traits=_WRITTEN,
    ),
)  # fmt: skip
