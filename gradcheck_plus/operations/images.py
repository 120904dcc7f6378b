"""Convolution in all its forms, resampling, and what moves pixels."""

from gradcheck_plus.operations.conditions import always, images, one_of, shaped, weight
from gradcheck_plus.operations.entry import Accepts
from gradcheck_plus.operations.tables import functions, layers

_FAMILY = "images"


def _even(n: int) -> Accepts:
    """Accept values whose last `n` dimensions have an even size."""
    return lambda a: all(size > 0 and size % 2 == 0 for size in a.shape[-n:])


OPERATIONS = (
    *layers(
        _FAMILY, {
            "conv1d_padded": "nn.Conv1d({a.shape[1]}, 2, 3, padding=1)",
            "conv_transpose1d_padded": "nn.ConvTranspose1d({a.shape[1]}, 2, 3, padding=1)",
        },
        accepts=images(3), results=shaped(lambda shape, k: (*shape[:-2], 2, *shape[-1:])), autocast="low", empty=True,
        trainable=True,
    ),
    *layers(
        _FAMILY, {
            "conv2d_padded": "nn.Conv2d({a.shape[1]}, 2, 3, padding=1)",
            "conv_transpose2d_padded": "nn.ConvTranspose2d({a.shape[1]}, 2, 3, padding=1)",
        },
        accepts=images(4), results=shaped(lambda shape, k: (*shape[:-3], 2, *shape[-2:])), autocast="low",
        trainable=True,
    ),
    *layers(
        _FAMILY, {
            "conv3d_padded": "nn.Conv3d({a.shape[0]}, 2, 3, padding=1)",
            "conv_transpose3d_padded": "nn.ConvTranspose3d({a.shape[0]}, 2, 3, padding=1)",
        },
        accepts=images(4), results=shaped(lambda shape, k: (*shape[:-4], 2, *shape[-3:])), autocast="low",
        inner_view=always, trainable=True,
    ),
    *functions(
        _FAMILY, {
            "functional_conv1d": "F.conv1d({a}, {b})",
        },
        accepts=images(3), results=shaped(lambda shape, k: (shape[0], 2, shape[2])),
        partners=(weight(lambda a: (2, a.channels, 1)),),
        autocast="low", empty=True,
    ),
    *functions(
        _FAMILY, {
            "functional_conv_transpose1d": "F.conv_transpose1d({a}, {b})",
        },
        accepts=images(3), results=shaped(lambda shape, k: (shape[0], 2, shape[2])),
        partners=(weight(lambda a: (a.channels, 2, 1)),),
        autocast="low", empty=True,
    ),
    *functions(
        _FAMILY, {
            "functional_conv2d": "F.conv2d({a}, {b})",
        },
        accepts=images(4), results=shaped(lambda shape, k: (shape[0], 2, *shape[2:])),
        partners=(weight(lambda a: (2, a.channels, 1, 1)),),
        autocast="low",
    ),
    *functions(
        _FAMILY, {
            "functional_conv_transpose2d": "F.conv_transpose2d({a}, {b})",
        },
        accepts=images(4), results=shaped(lambda shape, k: (shape[0], 2, *shape[2:])),
        partners=(weight(lambda a: (a.channels, 2, 1, 1)),),
        autocast="low",
    ),
    *functions(
        _FAMILY, {
            "functional_conv3d": "F.conv3d({a}, {b})",
        },
        accepts=images(4), results=shaped(lambda shape, k: (2, *shape[1:])),
        partners=(weight(lambda a: (2, a.shape[0], 1, 1, 1)),),
        autocast="low", inner_view=always,
    ),
    *functions(
        _FAMILY, {
            "functional_conv_transpose3d": "F.conv_transpose3d({a}, {b})",
        },
        accepts=images(4), results=shaped(lambda shape, k: (2, *shape[1:])),
        partners=(weight(lambda a: (a.shape[0], 2, 1, 1, 1)),),
        autocast="low", inner_view=always,
    ),
    *layers(
        _FAMILY, {
            "conv2d_depthwise": "nn.Conv2d({a.channels}, {a.channels}, 3, padding=1, groups={a.channels})",
            "conv2d_dilated": "nn.Conv2d({a.channels}, {a.channels}, 3, padding=2, dilation=2)",
            "conv_transpose2d_dilated": "nn.ConvTranspose2d({a.channels}, {a.channels}, 3, padding=2, dilation=2)",
        },
        accepts=images(4), results=shaped(lambda shape, k: (shape[0], shape[1], shape[2], shape[3])), autocast="low",
        trainable=True,
    ),
    *functions(
        _FAMILY, {
            "interpolate_exact": "F.interpolate({a}, scale_factor=2.0, mode={mode})",
        },
        accepts=images(3), attributes={"mode": one_of("nearest-exact", "area")},
        results=shaped(lambda shape, k: (*shape[:-1], shape[-1] * 2)), autocast="free", empty=True, inner_view=always,
    ),
    *functions(
        _FAMILY, {
            "interpolate2d": "F.interpolate({a}, size=(3, 3), mode={mode})",
        },
        accepts=images(4), attributes={"mode": one_of("nearest", "nearest-exact", "bilinear", "bicubic", "area")},
        results=shaped(lambda shape, k: (*shape[:-2], 3, 3)), autocast="free", elementwise=True,
    ),
    *functions(
        _FAMILY, {
            "interpolate_antialias": "F.interpolate({a}, size=(3, 3), mode={mode}, antialias=True)",
        },
        accepts=images(4), attributes={"mode": one_of("bilinear", "bicubic")},
        results=shaped(lambda shape, k: (*shape[:-2], 3, 3)), autocast="free", elementwise=True, low=False,
    ),
    *functions(
        _FAMILY, {
            "interpolate3d": "F.interpolate({a}.unsqueeze(0), size=({a.shape[1]}, 2, 3), mode={mode}).squeeze(0)",
        },
        accepts=images(4), attributes={"mode": one_of("nearest", "nearest-exact", "trilinear", "area")},
        results=shaped(lambda shape, k: (shape[0], shape[1], 2, 3)), autocast="free", elementwise=True,
        inner_view=always,
    ),
    *layers(
        _FAMILY, {
            "upsample_module": "nn.Upsample(scale_factor=2)",
            "upsampling_nearest2d": "nn.UpsamplingNearest2d(scale_factor=2)",
            "upsampling_bilinear2d": "nn.UpsamplingBilinear2d(scale_factor=2)",
        },
        accepts=images(4), results=shaped(lambda shape, k: (*shape[:-2], *(2 * s for s in shape[-2:]))),
        autocast="free", elementwise=True,
    ),
    *functions(
        _FAMILY, {
            "grid_sample": (
                "F.grid_sample({a}, F.affine_grid({a}.new_tensor([[[0.75, 0.125, 0.0625], [0.0, 0.75, "
                "0.125]]]).expand({a.shape[0]}, -1, -1), {a}.shape, align_corners=False), mode={mode}, "
                "padding_mode={padding}, align_corners=False)"
            ),
        },
        accepts=images(4),
        attributes={"mode": one_of("bilinear", "nearest", "bicubic"), "padding": one_of("zeros", "border", "reflection")},
        autocast="free", elementwise=True,
    ),
    *functions(
        _FAMILY, {
            "grid_sample3d": (
                "F.grid_sample({a}.unsqueeze(0), F.affine_grid({a}.new_tensor([[[0.75, 0.125, 0.0, 0.0625], [0.0, "
                "0.75, 0.0, 0.125], [0.0, 0.0, 0.5, 0.0]]]), (1, *{a}.shape), align_corners=False), mode={mode}, "
                "align_corners=False).squeeze(0)"
            ),
        },
        accepts=images(4), attributes={"mode": one_of("bilinear", "nearest")}, autocast="free", elementwise=True,
        inner_view=always,
    ),
    *functions(
        _FAMILY, {
            "affine_grid": "F.affine_grid({a}.reshape(-1, 2, 3)[:1], (1, 1, 2, 2), align_corners=False)",
        },
        accepts=lambda a: a.shape[-2:] == (2, 3), results=shaped(lambda shape, k: (1, 2, 2, 2)), autocast="low",
        elementwise=True,
    ),
    *functions(
        _FAMILY, {
            "grid_of": (
                "F.grid_sample({a}, ({a}[:, :1, :, :, None] * {a}.new_tensor([0.25, 0.125])).squeeze(1).sin(), "
                "align_corners=False) + {a}"
            ),
        },
        accepts=lambda a: a.shape[-2:] == (2, 2) and a.rank == 4 and a.channels < 4, autocast="free", uses=3,
    ),
    *functions(
        _FAMILY, {
            "pixel_unshuffle": "F.pixel_unshuffle({a}, 2)",
        },
        accepts=lambda a: a.rank == 4 and _even(2)(a),
        results=shaped(lambda shape, k: (shape[0], shape[1] * 4, shape[2] // 2, shape[3] // 2)), elementwise=True,
    ),
    *layers(
        _FAMILY, {
            "pixel_unshuffle_module": "nn.PixelUnshuffle(2)",
        },
        accepts=lambda a: a.rank == 4 and _even(2)(a),
        results=shaped(lambda shape, k: (shape[0], shape[1] * 4, shape[2] // 2, shape[3] // 2)), elementwise=True,
    ),
    *layers(
        _FAMILY, {
            "pixel_shuffle_module": "nn.PixelShuffle(2)",
        },
        accepts=lambda a: a.rank == 4 and a.size > 0,
        results=shaped(lambda shape, k: (shape[0], 1, 2 * shape[2], 2 * shape[3])),
        line="{module}({a}[:, :1].expand(-1, 4, -1, -1))", elementwise=True,
    ),
    *functions(
        _FAMILY, {
            "pixel_shuffle": "F.pixel_shuffle({a}[:, :1].expand(-1, 4, -1, -1), 2)",
        },
        accepts=lambda a: a.rank == 4 and a.size > 0,
        results=shaped(lambda shape, k: (shape[0], 1, 2 * shape[2], 2 * shape[3])), elementwise=True,
    ),
    *functions(
        _FAMILY, {
            "channel_shuffle": "F.channel_shuffle({a}, 2)",
        },
        accepts=lambda a: a.rank in (3, 4) and a.channels % 2 == 0 and a.size > 0, elementwise=True,
    ),
    *layers(
        _FAMILY, {
            "channel_shuffle_module": "nn.ChannelShuffle(2)",
        },
        accepts=lambda a: a.rank in (3, 4) and a.channels % 2 == 0 and a.size > 0, elementwise=True,
    ),
    *functions(
        _FAMILY, {
            "unfold_images": "F.unfold({a}, 2)",
        },
        accepts=lambda a: a.rank == 4 and a.size > 0 and min(a.shape[-2:]) > 1,
        results=shaped(lambda shape, k: (shape[0], shape[1] * 4, (shape[2] - 1) * (shape[3] - 1))), elementwise=True,
    ),
    *layers(
        _FAMILY, {
            "unfold_module": "nn.Unfold(2)",
        },
        accepts=lambda a: a.rank == 4 and a.size > 0 and min(a.shape[-2:]) > 1,
        results=shaped(lambda shape, k: (shape[0], shape[1] * 4, (shape[2] - 1) * (shape[3] - 1))), elementwise=True,
    ),
    *functions(
        _FAMILY, {
            "fold_images": "F.fold(F.unfold({a}, 2), {a}.shape[-2:], 2)",
        },
        accepts=lambda a: a.rank == 4 and a.size > 0 and min(a.shape[-2:]) > 1, elementwise=True,
    ),
    *layers(
        _FAMILY, {
            "fold_module": "nn.Fold(({a.shape[2]}, {a.shape[3]}), 2)",
        },
        accepts=lambda a: a.rank == 4 and a.size > 0 and min(a.shape[-2:]) > 1, line="{module}(F.unfold({a}, 2))",
        elementwise=True,
    ),
)  # fmt: skip
