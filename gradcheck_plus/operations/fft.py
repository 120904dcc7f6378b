"""Fourier transforms, and complex values inside an operation."""

from gradcheck_plus.operations.conditions import always, at_least, both, even_last, filled, filled_last, shaped
from gradcheck_plus.operations.tables import functions

_FAMILY = "fourier"


OPERATIONS = (
    *functions(
        _FAMILY, {
            "fft": "torch.view_as_real(torch.fft.fft({a}))",
            "ifft": 'torch.view_as_real(torch.fft.ifft({a}, norm="ortho").resolve_conj())',
            "fftn": "torch.view_as_real(torch.fft.fftn({a}))",
            "ifftn": "torch.view_as_real(torch.fft.ifftn({a}).resolve_conj())",
        },
        accepts=filled_last, low=False, autocast="no", results=shaped(lambda shape, k: (*shape, 2)), inner_view=always,
    ),
    *functions(
        _FAMILY, {
            "fft2": "torch.view_as_real(torch.fft.fft2({a}))",
            "ifft2": "torch.view_as_real(torch.fft.ifft2({a}).resolve_conj())",
        },
        accepts=both(at_least(2), filled), low=False, autocast="no", results=shaped(lambda shape, k: (*shape, 2)),
        inner_view=always,
    ),
    *functions(
        _FAMILY, {
            "rfft": "torch.view_as_real(torch.fft.rfft({a}))",
            "ihfft": "torch.view_as_real(torch.fft.ihfft({a}).resolve_conj())",
            "rfftn": "torch.view_as_real(torch.fft.rfftn({a}))",
        },
        accepts=filled_last, low=False, autocast="no",
        results=shaped(lambda shape, k: (*shape[:-1], shape[-1] // 2 + 1, 2)), inner_view=always,
    ),
    *functions(
        _FAMILY, {
            "ihfftn": "torch.view_as_real(torch.fft.ihfftn({a}).resolve_conj())",
        },
        accepts=filled_last, low=False, autocast="no",
        results=shaped(lambda shape, k: (*shape[:-1], shape[-1] // 2 + 1, 2)), inner_view=always, strided=True,
    ),
    *functions(
        _FAMILY, {
            "rfft2": "torch.view_as_real(torch.fft.rfft2({a}))",
        },
        accepts=both(at_least(2), filled), low=False, autocast="no",
        results=shaped(lambda shape, k: (*shape[:-1], shape[-1] // 2 + 1, 2)), inner_view=always,
    ),
    *functions(
        _FAMILY, {
            "ihfft2": "torch.view_as_real(torch.fft.ihfft2({a}).resolve_conj())",
        },
        accepts=both(at_least(2), filled), low=False, autocast="no",
        results=shaped(lambda shape, k: (*shape[:-1], shape[-1] // 2 + 1, 2)), inner_view=always, strided=True,
    ),
    *functions(
        _FAMILY, {
            "irfft": "torch.fft.irfft(torch.fft.rfft({a}), n={a.last})",
            "hfft": "torch.fft.hfft({a}, n={a.last})",
            "irfftn": "torch.fft.irfftn(torch.fft.rfftn({a}), s={a}.shape)",
            "hfftn": "torch.fft.hfftn({a}, s={a}.shape)",
            "spectrum": "torch.fft.fft({a}).abs()",
        },
        accepts=filled_last, low=False, autocast="no",
    ),
    *functions(
        _FAMILY, {
            "fftshift": "torch.fft.fftshift({a})",
            "ifftshift": "torch.fft.ifftshift({a}, -1)",
        },
        accepts=filled_last, low=False, autocast="no", elementwise=True, empty=True,
    ),
    *functions(
        _FAMILY, {
            "irfft2": "torch.fft.irfft2(torch.fft.rfft2({a}), s={a}.shape[-2:])",
        },
        accepts=both(at_least(2), filled), low=False, autocast="no", elementwise=True,
    ),
    *functions(
        _FAMILY, {
            "hfft2": "torch.fft.hfft2({a}, s={a}.shape[-2:])",
        },
        accepts=both(at_least(2), filled), low=False, autocast="no",
    ),
    *functions(
        _FAMILY, {
            "stft": (
                "torch.view_as_real(torch.stft({a}, 2, hop_length=1, window={a}.new_ones(2), return_complex=True))"
            ),
        },
        accepts=lambda a: a.rank == 1 and a.size >= 3, low=False, autocast="no",
        results=shaped(lambda shape, k: (2, shape[0] + 1, 2)), elementwise=True, inner_view=always, strided=True,
    ),
    *functions(
        _FAMILY, {
            "istft": (
                "torch.istft(torch.stft({a}, 2, hop_length=1, window={a}.new_ones(2), return_complex=True), 2, "
                "hop_length=1, window={a}.new_ones(2), length={a.size})"
            ),
        },
        accepts=lambda a: a.rank == 1 and a.size >= 3, low=False, autocast="no", results=shaped(lambda shape, k: shape),
        elementwise=True, inner_view=always,
    ),
    *functions(
        _FAMILY, {
            "complex_product": "(torch.complex({a}, {a}.sin()) * torch.complex({a}.cos(), {a})).real",
        },
        low=False, autocast="no", empty=True, inner_view=always, strided=True, uses=4,
    ),
    *functions(
        _FAMILY, {
            "polar": "torch.polar({a}.abs() + 1, {a}).imag",
            "sgn_complex": "torch.complex({a}.abs() + 1, {a}).sgn().imag",
            "complex_exp": "torch.exp(torch.complex({a} / 64, {a})).real",
            "complex_sqrt": "torch.sqrt(torch.complex({a}.abs() + 1, {a})).imag",
            "complex_tanh": "torch.tanh(torch.complex({a} / 64, {a} / 64)).imag",
        },
        low=False, autocast="no", empty=True, inner_view=always, saves_result=True, strided=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "complex_abs": "torch.complex({a}, {a} * 0 + 1).abs()",
            "angle": "torch.complex({a}.abs() + 1, {a}).angle()",
            "neg_view": "torch.complex({a}, {a}.sin()).conj().imag.resolve_neg()",
        },
        low=False, autocast="no", empty=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "conj_physical": "torch.conj_physical(torch.complex({a}, {a}.sin())).imag",
            "resolve_conj_inside": "torch.complex({a}, {a}.sin()).conj().resolve_conj().imag",
            "complex_log": "torch.log(torch.complex({a}.abs() + 1, {a})).imag",
        },
        low=False, autocast="no", empty=True, inner_view=always, strided=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "as_complex": "torch.view_as_complex({a}.contiguous().view(*{a}.shape[:-1], -1, 2)).abs()",
        },
        accepts=even_last, low=False, autocast="no", results=shaped(lambda shape, k: (*shape[:-1], shape[-1] // 2)),
    ),
    *functions(
        _FAMILY, {
            "complex_matmul": (
                "torch.view_as_real(torch.complex({a}, {a}.sin()) @ "
                "torch.complex({a}.new_ones({a.last}).diag(), {a}.new_ones({a.last}, {a.last})))[..., 1]"
            ),
            "complex_pairs": "torch.view_as_real(torch.complex({a}, {a}.sin()))[..., 0]",
        },
        accepts=filled_last, low=False, autocast="no", empty=True, inner_view=always, strided=True, uses=2,
    ),
)  # fmt: skip
