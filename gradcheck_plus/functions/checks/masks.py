"""Which arguments require grad decides which gradients come, not what they are."""

import itertools

from gradcheck_plus.functions.checks.check import Check, by
from gradcheck_plus.functions.support import near, pulled, shown


def masked(op, call, leaves, names):
    """Freeze every subset of the arguments that require grad."""
    every = pulled(op, call, leaves)
    needing = [slot for slot, t in enumerate(leaves()) if t.requires_grad][:6]
    for count in range(len(needing) - 1, 0, -1):
        for kept in itertools.combinations(needing, count):
            frozen = [slot for slot in needing if slot not in kept]
            when = f"when {' and '.join(names[slot] for slot in frozen)} {'do' if len(frozen) > 1 else 'does'} not require grad"

            def some(frozen=frozen):
                made = leaves()
                return [t.requires_grad_(False) if slot in frozen else t for slot, t in enumerate(made)]

            try:
                found = pulled(op, call, some)
            except Exception as error:
                yield None, "raises", f"it raises {type(error).__name__} {when}: {error}".splitlines()[0]
                continue
            for slot in kept:
                if not near(every[slot], found[slot]):
                    said = f"gradient of {names[slot]} is another one {when}: got {shown(found[slot])}"
                    yield slot, "value", f"{said}, expected {shown(every[slot])}"


CHECK = Check(
    "masks",
    "gradients are the same whichever other arguments require grad",
    by(masked),
    core=masked,
    source="NVIDIA/Megatron-LM#548",
    rank=1,
    often=2,
)
