"""Traits of what a subject is told to do."""

from gradcheck_plus.traits.facts import Facts
from gradcheck_plus.traits.trait import CHECKPOINT_DOCS, FUNCTION, WRAPPER, Trait

#: What draws random numbers, or is handed a tensor to write them into.
_RANDOM = ("bernoulli", "rand", "normal", "dropout", "rrelu_with_noise", "multinomial", "uniform", "exponential", "poisson")


def base_name(operation: str) -> str:
    """Return the name of an operation without its namespace and overload.

    Example:
        >>> base_name("aten.mul_.Tensor")
        'mul_'
    """
    return operation.split(".")[1] if "." in operation else operation


def _in_place(f: Facts) -> bool:
    return any(base_name(name).endswith("_") and not base_name(name).endswith("__") for name, _ in f.case.plan.saved)


def _random(f: Facts) -> bool:
    return any(base_name(name).startswith(_RANDOM) for name, _ in f.case.plan.saved)


def _cast(f: Facts) -> bool:
    return bool(f.environment.autocast) and any(base_name(name) == "_to_copy" for name, _ in f.case.plan.saved)


TABLE = (
    Trait(
        "saved-result",
        "a policy keeps a result that is otherwise recomputed",
        lambda f: bool(f.case.plan.saved),
        "pytorch/pytorch#119590",
        kinds=FUNCTION,
        drawn=False,
    ),
    Trait(
        "saved-in-place",
        "a policy keeps the result of an operation in place",
        _in_place,
        "pytorch/pytorch#113737",
        kinds=FUNCTION,
        drawn=False,
    ),
    Trait(
        "saved-random",
        "a policy keeps the result of an operation that draws random numbers",
        _random,
        "pytorch/pytorch#190758",
        kinds=FUNCTION,
        drawn=False,
    ),
    Trait(
        "saved-cast",
        "a policy keeps a cast, under autocast",
        _cast,
        "pytorch/pytorch#193338",
        kinds=FUNCTION,
        drawn=False,
    ),
    Trait(
        "nested-layers",
        "a checkpoint stands inside another one",
        lambda f: bool(f.case.plan.layers),
        CHECKPOINT_DOCS,
        kinds=FUNCTION,
        drawn=False,
    ),
    Trait(
        "several-pieces",
        "a sequence is cut into pieces",
        lambda f: f.case.plan.pieces > 1,
        "NVIDIA/Megatron-LM#290",
        kinds=FUNCTION,
        drawn=False,
    ),
    Trait(
        "inner-wrap",
        "a module inside a region is wrapped as well",
        lambda f: bool(f.case.plan.inner),
        "pytorch/pytorch#110610",
        kinds=WRAPPER,
    ),
    Trait(
        "double-wrap",
        "a region is wrapped twice",
        lambda f: f.case.plan.times > 1,
        "huggingface/accelerate#3977",
        kinds=WRAPPER,
    ),
)
