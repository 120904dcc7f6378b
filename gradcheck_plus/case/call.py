"""A call of a user's function: one sample call, varied."""

import msgspec


class Variation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way in which a call differs from the sample call.

    Attributes:
        name: what it does; the name of a trait.
        slot: which of the tensors it is done to, modulo how many there are that it can be done to.
        choice: which of its forms, modulo how many it has.
    """

    name: str
    slot: int = 0
    choice: int = 0


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A varied call of a user's function, and the check that is made of it; `Case.call` where functions are checked.

    Attributes:
        check: the name of the check.
        variations: how the call differs from the sample call.
        inputs: the target of the sample call; empty for one that the function's signature suggests.
        reference: the target of the reference; empty where there is none.
        sample: the sample call itself, as JSON, where it was drawn from a strategy.

    Example:
        >>> Call("values", (Variation("zero-values"),)).names
        frozenset({'zero-values'})
    """

    check: str
    variations: tuple[Variation, ...] = ()
    inputs: str = ""
    reference: str = ""
    sample: str = ""

    @property
    def names(self) -> frozenset[str]:
        """The names of the variations."""
        return frozenset(variation.name for variation in self.variations)
