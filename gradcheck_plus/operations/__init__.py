"""The operation catalogue: one entry an operation, one file a family.

A folder listing is the list of families. To add an operation, add an entry to a file; to add a family, add a file and name
it below.
"""

from gradcheck_plus.operations import (
    attention,
    binary,
    casts,
    control,
    convolution,
    fft,
    functions,
    images,
    indexing,
    inplace,
    joining,
    layers,
    linalg,
    linear,
    losses,
    normalisation,
    padding,
    pointwise,
    pooling,
    random,
    recurrent,
    reductions,
    shapes,
    special,
    state,
    views,
)
from gradcheck_plus.operations.entry import (
    CATALOGUE,
    Group,
    Operation,
    Partner,
    applicable,
    register,
    render,
    results_of,
    seen_by,
)

for _family in (
    pointwise,
    linear,
    normalisation,
    reductions,
    joining,
    views,
    indexing,
    convolution,
    attention,
    recurrent,
    losses,
    random,
    inplace,
    casts,
    control,
    functions,
    binary,
    special,
    shapes,
    linalg,
    fft,
    pooling,
    padding,
    images,
    layers,
    state,
):
    for _operation in _family.OPERATIONS:
        register(_operation)

__all__ = ["CATALOGUE", "Group", "Operation", "Partner", "applicable", "register", "render", "results_of", "seen_by"]
