"""The catalogue against torch's own lists of what can be differentiated; what is left out is named, with the reason.

Two lists, both read from the torch that is installed. `torch.overrides.get_overridable_functions` and `torch.nn` say what can
be called: an operation has a function or a module if it names it. `torchgen`'s ``derivatives.yaml``, which autograd is
generated from, says what has a formula: an operation has one if autograd meets it when the operation runs.
"""

import itertools
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from gradcheck_plus import support
from gradcheck_plus.compat import SEEN_ON, TorchDispatchMode, operation_name
from gradcheck_plus.operations import CATALOGUE

#: By reason, what torch has and the catalogue has not, as shell patterns. Names are `plain`.
LEFT_OUT = {
    "its results are no floating tensors": """
        all allclose argmin argwhere bincount bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor bucketize
        count_nonzero gcd get_device greater greater_equal hash_tensor histc histogram histogramdd is_complex is_conj
        is_distributed is_floating_point is_inference is_neg is_nonzero is_same_size is_signed isclose isfinite isin
        isinf isneginf isposinf isreal lcm less less_equal logical_and logical_or logical_xor matrix_rank nonzero_static
        not_equal one_hot searchsorted signbit unravel_index is_all_true is_any_true bool byte char int long short
        numpy tolist is_contiguous is_coalesced is_pinned is_set_to is_shared""",
    "its gradient is  everywhere, or it has none": """
        binomial cauchy fix floor_divide geometric heaviside log_normal multinomial nextafter poisson random ones_like
        efficientzerotensor new_zeros_with_same_feature_meta""",
    "torch has no derivative of it, or not of what a module could be given": """
        airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u
        chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l
        legendre_polynomial_p modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1
        scaled_modified_bessel_k0 scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t
        shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w
        spherical_bessel_j0 geqrf ldl_factor ldl_factor_ex ldl_solve lobpcg unique unique2 unique_consecutive
        unique_dim unique_dim_consecutive embedding_renorm batch_norm_backward_elemt batch_norm_backward_reduce
        batch_norm_elemt batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_stats
        batch_norm_update_stats native_norm""",
    "another name of what is there, or the kernel that it calls": """
        absolute arccos arccosh arcsin arcsinh arctan arctan2 arctanh frobenius_norm grid_sampler
        native_channel_shuffle native_dropout norm_except_dim rnn_relu_cell rnn_tanh rnn_tanh_cell row_stack
        adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices
        fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices multi_head_attention_forward NLLLoss2d
        Container cdouble cfloat chalf cuda double float half ipu mtia xpu lift slice_inverse reshape_alias
        reshape_copy lazy_clone pin_memory index_put_impl unsafe_index unsafe_index_put unsafe_masked_index
        unsafe_masked_index_put_accumulate standard_gamma fill_diagonal map2 euclidean_dist cpu log_sigmoid negative
        type map""",
    "a base class of modules": "RNNBase RNNCellBase",
    "its parameters are not there before its first call": """
        LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d
        LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear""",
    "deprecated or in beta: it warns": "chain_matmul triangular_solve index_reduce",
    "its last bits change from one call to the next": "lstsq",
    "its backward refuses cotangents that are not contiguous": "conv_tbc",
    "it makes NaN of ties": "corrcoef",
    "it is random in a way that no seed of ours repeats in double precision": "pca_lowrank svd_lowrank",
    "newer than the oldest torch that is supported": "LinearCrossEntropyLoss linear_cross_entropy",
    "a copy of what a view of that name shows, for compilers": """
        alias_copy as_strided_copy ccol_indices_copy col_indices_copy crow_indices_copy detach_copy diagonal_copy
        expand_copy indices_copy permute_copy row_indices_copy select_copy slice_copy split_copy split_with_sizes_copy
        squeeze_copy t_copy transpose_copy unbind_copy unfold_copy unsqueeze_copy values_copy view_as_complex_copy
        view_as_real_copy""",
    "a formula of a backward, which a backward of a backward meets": """
        *_backward *_backward_data *_backward_overrideable standard_gamma_grad""",
    "another backend's": """
        *cudnn* miopen* *mps* mkldnn* *mkldnn_* nnpack* *_overrideable efficient_attention_forward
        flash_attention_forward scaled_dot_product_flash_attention scaled_dot_product_efficient_attention
        scaled_dot_product_fused_attention* fused_dropout thnn_fused* native_batch_norm_legit* batch_norm_with_update
        batch_norm_no_update conv_depthwise* slow_conv* grid_sampler_2d_cpu_fallback* rrelu_with_noise_functional
        fused_rms_norm grouped_mm upsample_lanczos2d_aa convolution_overrideable foreach_*""",
    "of quantised, sparse, nested or packed tensors": """
        *quant* choose_qparams* fbgemm* *_fake_quant* fused_moving_avg* int_repr q_* qscheme *sparse* ccol_indices
        col_indices crow_indices row_indices indices coalesce dense_dim to_dense to_padded_tensor to_mkldnn nested*
        dsmm hsmm hspmm saddmm smm spmm sspaddmm pack_padded_sequence""",
    "made for other processes": "DataParallel SyncBatchNorm share_memory module_load",
    "made for tracing, or for torch's own tests": "sym_* test_*",
    "it says or changes what a tensor is, and computes nothing": """
        const_data_ptr dim_order element_size ndimension nelement register_post_accumulate_grad_hook
        record_stream resize retain_grad storage storage_offset storage_type autocast""",
}

#: Namespaces of functions; `torch.nn.functional` keeps its modules' functions.
NAMESPACES = (torch, torch.functional, nn.functional, torch.linalg, torch.fft, torch.special, torch.Tensor)
NEWEST = torch.__version__.startswith(SEEN_ON[-1])


def plain(name: str) -> str:
    """Return a name without what tells its namespace, and whether it is in place."""
    return re.sub(r"^_?(special|linalg|fft)_", "", name).strip("_")


def can_be_called() -> set[str]:
    """Return what torch lets be overridden, and its modules."""
    listed = torch.overrides.get_overridable_functions()
    functions = {getattr(f, "__name__", "_") for namespace in NAMESPACES for f in listed[namespace]}
    modules = {name for name, value in vars(nn).items() if isinstance(value, type) and issubclass(value, nn.Module)}
    return {plain(name) for name in functions if not name.startswith("_")} | modules - {"Module"}


def have_formulas() -> set[str]:
    """Return what autograd is generated for."""
    text = (files("torchgen") / "packaged" / "autograd" / "derivatives.yaml").read_text(encoding="utf-8")
    return {plain(name) for name in re.findall(r"^- name: (\w+)", text, re.MULTILINE)}


class Meeting(TorchDispatchMode):
    """Notes what autograd meets."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch does not annotate it
        self.met: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.met.add(plain(operation_name(func)))
        return func(*args, **(kwargs or {}))


@pytest.fixture(scope="module")
def met(trials: Callable[..., Iterator[Any]]) -> set[str]:
    """What autograd meets when every operation of the catalogue runs, with each of its attributes."""
    with Meeting() as meeting:
        for operation in CATALOGUE.values():
            for trial in itertools.islice((t for t in trials(operation) if t.plain), 4 if operation.attributes else 1):
                trial.run()
    found: set[str] = meeting.met
    return found


@pytest.fixture(scope="module")
def missing(met: set[str]) -> set[str]:
    """What torch has and the catalogue has not."""
    written = [*(text for o in CATALOGUE.values() for text in (o.line, o.setup)), Path(support.__file__).read_text("utf-8")]
    named = {plain(word) for text in written for word in re.findall(r"\.(\w+)", text)} | {plain(name) for name in CATALOGUE}
    return (can_be_called() - named - met) | (have_formulas() - named - met)


def test_the_catalogue_has_everything_that_is_not_left_out(missing: set[str]) -> None:
    patterns = [p for names in LEFT_OUT.values() for p in names.split()]

    assert sorted(name for name in missing if not any(fnmatchcase(name, p) for p in patterns)) == []


@pytest.mark.skipif(not NEWEST, reason="what is left out is what the newest torch has")
@pytest.mark.parametrize("reason", LEFT_OUT)
def test_nothing_is_left_out_that_torch_has_not_or_the_catalogue_has(reason: str, missing: set[str]) -> None:
    names = LEFT_OUT[reason].split()

    assert [p for p in names if not any(fnmatchcase(name, p) for name in missing)] == []
    assert len(names) == len(set(names))


def test_nothing_is_left_out_for_two_reasons() -> None:
    names = [p for names in LEFT_OUT.values() for p in names.split()]

    assert [p for p in names if names.count(p) > 1] == []
