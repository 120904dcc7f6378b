"""More pointwise functions of several tensors."""

from gradcheck_plus.operations.conditions import FULL, TWIN, together
from gradcheck_plus.operations.tables import functions

_FAMILY = "binary"

OPERATIONS = (
    *functions(
        _FAMILY, {
            "atan2": "torch.atan2({a}, {b}.abs() + 0.5)",
            "fmax": "torch.fmax({a}, {b})",
            "fmin": "torch.fmin({a}, {b})",
            "logaddexp2": "torch.logaddexp2({a}, {b})",
            "xlog1py": "torch.special.xlog1py({a}, {b}.abs())",
            "fmod_tensor": "torch.fmod({a}, {b}.abs() + 0.5)",
            "remainder_tensor": "torch.remainder({a}, {b}.abs() + 0.5)",
            "clamp_tensor": "torch.clamp({a}, min={b})",
            "rsub_tensor": "torch.rsub({a}, {b}, alpha=2)",
            "add_scaled": "torch.add({a}, {b}, alpha=0.5)",
            "sub_scaled": "torch.subtract({a}, {b}, alpha=2)",
            "multiply": "torch.multiply({a}, {b})",
            "where_mask": "torch.where({b} > {a}, {a}, {b})",
            "threshold_with": "{a}.where({a} > {b}, {b})",
        },
        partners=(FULL,), results=together, empty=True,
    ),
    *functions(
        _FAMILY, {
            "copysign": "torch.copysign({a}, {b})",
        },
        partners=(FULL,), results=together, empty=True, saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "xlogy": "torch.xlogy({a}, {b}.abs() + 0.5)",
        },
        partners=(FULL,), results=together, autocast="free", empty=True,
    ),
    *functions(
        _FAMILY, {
            "pow_tensor": "torch.pow({a}.abs() + 0.5, {b}.sin())",
        },
        partners=(FULL,), results=together, autocast="free", empty=True, saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "divide_rounded": '{a} - torch.divide({a}, {b}.abs() + 0.5, rounding_mode="floor")',
        },
        partners=(FULL,), results=together, empty=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "addcdiv": "torch.addcdiv({a}, {b}, {c}.abs() + 1, value=0.5)",
            "lerp_tensor": "torch.lerp({a}, {b}, {c}.sigmoid())",
        },
        partners=(TWIN, TWIN), results=together, empty=True,
    ),
)  # fmt: skip
