"""Special functions of mathematics."""

from gradcheck_plus.operations.tables import functions

_FAMILY = "special"


OPERATIONS = (
    *functions(
        _FAMILY, {
            "entr": "torch.special.entr({a}.abs() + 0.1)",
            "polygamma": "torch.polygamma(1, {a}.abs() + 1)",
            "logit": "torch.logit({a}.sigmoid() / 2 + 0.25)",
            "special_logit": "torch.special.logit({a} / 300 + 0.5, eps=0.01)",
            "xlogy_special": "torch.special.xlogy(2.0, {a}.abs() + 0.5)",
        },
        autocast="free", elementwise=True, empty=True,
    ),
    *functions(
        _FAMILY, {
            "erfcx": "torch.special.erfcx({a} / 8)",
            "i1": "torch.special.i1({a} / 16)",
            "i1e": "torch.special.i1e({a})",
            "log_ndtr": "torch.special.log_ndtr({a} / 16)",
            "ndtri": "torch.special.ndtri({a} / 300 + 0.5)",
        },
        elementwise=True, empty=True, low=False, saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "i0": "torch.i0({a} / 16)",
            "ndtr": "torch.special.ndtr({a} / 2)",
            "digamma": "torch.digamma({a}.abs() + 1)",
            "lgamma": "torch.lgamma({a}.abs() + 1)",
            "gammaln": "torch.special.gammaln({a}.abs() + 2)",
            "psi": "torch.special.psi({a}.abs() + 2)",
            "multigammaln": "torch.special.multigammaln({a}.abs() + 1, 2)",
            "mvlgamma": "torch.mvlgamma({a}.abs() + 2, 2)",
            "gammainc": "torch.special.gammainc(torch.full_like({a}, 2.0), {a}.abs() / 16 + 0.5)",
            "gammaincc": "torch.special.gammaincc(torch.full_like({a}, 2.0), {a}.abs() / 16 + 0.5)",
        },
        elementwise=True, empty=True,
    ),
    *functions(
        _FAMILY, {
            "i0e": "torch.special.i0e({a})",
            "expit": "torch.special.expit({a})",
        },
        elementwise=True, empty=True, saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "zeta": "torch.special.zeta(3.0, {a}.abs() + 1)",
        },
        elementwise=True, empty=True, low=False,
    ),
)  # fmt: skip
