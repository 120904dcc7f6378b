"""Traits of what the outputs receive."""

from gradcheck_plus.traits.trait import STAGE, Trait

TABLE = (
    Trait(
        "none-cotangent",
        "an output that requires grad receives nothing",
        lambda f: f.unreached_output,
        "pytorch/pytorch#58511, pytorch/pytorch#12631",
        quiet=True,
    ),
    Trait(
        "zero-cotangent",
        "an output receives zeros",
        lambda f: any(c.fill == "zero" for c in f.case.cotangents),
        "pytorch/pytorch#17455",
        quiet=True,
    ),
    Trait(
        "one-hot-cotangent",
        "an output receives a one-hot cotangent",
        lambda f: any(c.fill == "one-hot" for c in f.case.cotangents),
        "linkedin/Liger-Kernel#1298",
        quiet=True,
    ),
    Trait(
        "expanded-cotangent",
        "a cotangent is expanded",
        lambda f: any(c.layout == "expanded" for c in f.case.cotangents),
        "pytorch/pytorch#195210",
    ),
    Trait(
        "strided-cotangent",
        "a cotangent is transposed, strided or offset in memory",
        lambda f: any(c.layout in ("transposed", "strided", "offset") for c in f.case.cotangents),
        "Dao-AILab/flash-attention#355",
    ),
    Trait(
        "reversed-keys",
        "cotangents of a dict come in another order than its keys",
        lambda f: f.environment.reversed_keys and f.output_container("dict"),
        "pytorch/pytorch#124958",
        kinds=STAGE,
        needs=("nested-output",),
    ),
)
