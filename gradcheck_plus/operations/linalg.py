"""Linear algebra, of matrices whose eigenvalues and singular values lie apart.

A rounding error of an ill-conditioned matrix says nothing of a subject, so operands are made well-conditioned first
(`gradcheck_plus.support.spread`). Vectors are returned squared: their signs are free.
"""

from gradcheck_plus.case import Spec
from gradcheck_plus.operations.conditions import TWIN, always, shaped, twice
from gradcheck_plus.operations.tables import functions

_FAMILY = "linear algebra"


def _square(a: Spec) -> bool:
    """Accept batches of small square matrices."""
    return a.rank > 1 and 0 < a.shape[-2] == a.last <= 4


OPERATIONS = (
    *functions(
        _FAMILY, {
            "cholesky": "torch.linalg.cholesky(symmetric({a}))",
            "cholesky_ex": "torch.linalg.cholesky_ex(symmetric({a})).L",
            "cholesky_solve": "torch.cholesky_solve({a}, spread({a}).tril())",
            "solve": "torch.linalg.solve(spread({a}), {a})",
            "solve_ex": "torch.linalg.solve_ex(spread({a}), {a}).result",
            "solve_triangular": "torch.linalg.solve_triangular(spread({a}).triu(), {a}, upper=True)",
            "lu_solve": "torch.linalg.lu_solve(*torch.linalg.lu_factor(spread({a})), {a})",
            "orgqr": "torch.orgqr(spread({a}), {a}[..., 0].sin() / 8)",
        },
        accepts=_square, low=False, autocast="no", saves_result=True, strided=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "cholesky_inverse": "torch.cholesky_inverse(spread({a}).tril())",
            "inv": "torch.linalg.inv(spread({a}))",
            "inv_ex": "torch.linalg.inv_ex(spread({a})).inverse",
            "inverse": "spread({a}).inverse()",
            "matrix_power_negative": "torch.linalg.matrix_power(spread({a}), -1)",
            "qr": "torch.linalg.qr(spread({a})).R",
            "qr_product": "torch.linalg.qr(spread({a})).Q",
        },
        accepts=_square, low=False, autocast="no", saves_result=True, strided=True,
    ),
    *functions(
        _FAMILY, {
            "pinv": "torch.linalg.pinv(spread({a}))",
            "pinverse": "spread({a}).pinverse()",
        },
        accepts=_square, low=False, autocast="no", saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "matrix_exp": "torch.linalg.matrix_exp(spread({a}).contiguous() / 4)",
            "matrix_power": "torch.linalg.matrix_power(spread({a}), 2)",
        },
        accepts=_square, low=False, autocast="no",
    ),
    *functions(
        _FAMILY, {
            "eigh": "torch.linalg.eigh(symmetric({a})).eigenvectors.square() * {a}",
        },
        accepts=_square, low=False, autocast="no", strided=True, uses=3,
    ),
    *functions(
        _FAMILY, {
            "svd": "torch.linalg.svd(spread({a})).U.square() * {a}",
            "eig": "torch.linalg.eig(spread({a})).eigenvectors.abs().square() * {a}",
            "symeig_low": 'torch.linalg.eigh(symmetric({a}), UPLO="U").eigenvectors.square()',
        },
        accepts=_square, low=False, autocast="no", strided=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "lu": "torch.linalg.lu(spread({a})).L @ {a}",
            "linalg_matmul": "torch.linalg.matmul({a}, spread({a}))",
            "expm_lowrank": "torch.svd(spread({a})).V.square() * {a}",
            "svd_old": "torch.svd(spread({a})).S.unsqueeze(-1) * {a}",
        },
        accepts=_square, low=False, autocast="no", uses=2,
    ),
    *functions(
        _FAMILY, {
            "lu_factor": "torch.linalg.lu_factor(spread({a})).LU",
            "lu_factor_ex": "torch.linalg.lu_factor_ex(spread({a})).LU",
        },
        accepts=_square, low=False, autocast="no", elementwise=True, saves_result=True, strided=True,
    ),
    *functions(
        _FAMILY, {
            "lu_unpack": "torch.lu_unpack(*torch.linalg.lu_factor(spread({a}))).U",
        },
        accepts=_square, low=False, autocast="no", elementwise=True,
    ),
    *functions(
        _FAMILY, {
            "householder_product": "torch.linalg.householder_product(torch.tril({a} / 8, -1) + {a}, {a}[..., 0].sin() / 8)",
            "ormqr": "torch.ormqr(spread({a}), {a}[..., 0].sin() / 8, {a})",
        },
        accepts=_square, low=False, autocast="no", saves_result=True, strided=True, uses=3,
    ),
    *functions(
        _FAMILY, {
            "multi_dot": "torch.linalg.multi_dot([{a}[(0,) * ({a}.dim() - 2)], {a}[(0,) * ({a}.dim() - 2)]]) + {a}",
            "tensorsolve": "torch.linalg.tensorsolve(spread({a}), {a}[:, 0]).unsqueeze(1) * {a} if {a}.dim() == 2 else {a} * 1",
        },
        accepts=_square, low=False, autocast="no", uses=3,
    ),
    *functions(
        _FAMILY, {
            "tensorinv": "torch.linalg.tensorinv(spread({a}), ind=1) if {a}.dim() == 2 else torch.linalg.inv(spread({a}))",
        },
        accepts=_square, low=False, autocast="no", inner_view=always, saves_result=True, strided=True,
    ),
    *functions(
        _FAMILY, {
            "eigvalsh": "torch.linalg.eigvalsh(symmetric({a}))",
        },
        accepts=_square, low=False, autocast="no", results=shaped(lambda shape, k: shape[:-1]), other_kernel=True,
        saves_result=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "svdvals": "torch.linalg.svdvals(spread({a}))",
        },
        accepts=_square, low=False, autocast="no", results=shaped(lambda shape, k: shape[:-1]), other_kernel=True,
        saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "eigvals": "torch.linalg.eigvals(spread({a})).real",
        },
        accepts=_square, low=False, autocast="no", results=shaped(lambda shape, k: shape[:-1]), inner_view=always,
        saves_result=True, strided=True,
    ),
    *functions(
        _FAMILY, {
            "eigh_values": "torch.linalg.eigh(symmetric({a})).eigenvalues",
        },
        accepts=_square, low=False, autocast="no", results=shaped(lambda shape, k: shape[:-1]), saves_result=True,
        uses=2,
    ),
    *functions(
        _FAMILY, {
            "svd_values": "torch.linalg.svd(spread({a})).S",
        },
        accepts=_square, low=False, autocast="no", results=shaped(lambda shape, k: shape[:-1]), saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "det": "torch.linalg.det(spread({a}))",
            "det_old": "torch.det(spread({a}))",
            "matrix_norm": "torch.linalg.matrix_norm({a})",
        },
        accepts=_square, low=False, autocast="no", results=shaped(lambda shape, k: shape[:-2]), saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "logdet": "torch.logdet(spread({a}))",
            "slogdet": "torch.linalg.slogdet(spread({a})).logabsdet",
            "slogdet_old": "torch.slogdet(spread({a})).logabsdet",
        },
        accepts=_square, low=False, autocast="no", results=shaped(lambda shape, k: shape[:-2]),
    ),
    *functions(
        _FAMILY, {
            "cond": "torch.linalg.cond(spread({a}))",
        },
        accepts=_square, low=False, autocast="no", results=shaped(lambda shape, k: shape[:-2]), inner_view=always,
        other_kernel=True,
    ),
    *functions(
        _FAMILY, {
            "matrix_norm_two": "torch.linalg.matrix_norm(spread({a}), 2)",
        },
        accepts=_square, low=False, autocast="no", results=shaped(lambda shape, k: shape[:-2]), other_kernel=True,
        saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "nuclear_norm": 'torch.linalg.matrix_norm(spread({a}), "nuc")',
        },
        accepts=_square, low=False, autocast="no", results=shaped(lambda shape, k: shape[:-2]), other_kernel=True,
    ),
    *functions(
        _FAMILY, {
            "lu_both": "torch.linalg.lu(spread({a}))[1:]",
        },
        accepts=_square, low=False, autocast="no", results=twice, traits=("several-results",), saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "qr_both": "torch.linalg.qr(spread({a}))",
        },
        accepts=_square, low=False, autocast="no", results=twice, traits=("several-results",), saves_result=True,
        strided=True,
    ),
    *functions(
        _FAMILY, {
            "eigh_both": "(lambda l, q: (l, q.square()))(*torch.linalg.eigh(symmetric({a})))",
        },
        accepts=_square, low=False, autocast="no", results=lambda specs,
        k: ((specs[0].shape[:-1], specs[0].dtype), (specs[0].shape, specs[0].dtype)), traits=("several-results",),
        saves_result=True, strided=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "cross": "torch.linalg.cross({a}, {b})",
            "cross_old": "torch.cross({a}, {b}, dim=-1)",
        },
        accepts=lambda a: a.rank > 0 and a.last == 3, partners=(TWIN,), low=False, empty=True,
    ),
)  # fmt: skip
