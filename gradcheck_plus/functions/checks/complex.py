"""The gradient of a complex input is the conjugate Wirtinger derivative, so a factor comes in conjugated."""

from gradcheck_plus.functions.checks import values
from gradcheck_plus.functions.checks.check import Check

CHECK = Check(
    "complex",
    "gradients of complex inputs are conjugated as autograd does",
    values.check,
    forces="complex-inputs",
    source="pytorch/pytorch#41857",
    rank=9,
    asked=True,
    suits=lambda sample: any(a.value.is_complex() for a in sample.arguments),
)
