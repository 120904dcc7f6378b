"""What a subject is told to do in one case: which results it keeps, which modules it wraps, in how many layers."""

from typing import Literal

import msgspec

#: One sort of checkpoint around a region.
Layer = Literal["non-reentrant", "save-on-cpu"]


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is drawn for subjects that can be told what to do; each field means something to some of them.

    Attributes:
        saved: for selective checkpoints, the operations whose results are kept, as the dispatcher names them, each with the
            number of the call in its region, from 0. All others are recomputed.
        layers: for nested checkpoints, what else is around every region, the outermost first.
        pieces: for checkpoints of sequences, into how many pieces one is cut.
        inner: for wrappers, the modules inside regions that are wrapped too, by their paths, before the regions are.
        times: for wrappers, how often every region is wrapped.
    """

    saved: tuple[tuple[str, int], ...] = ()
    layers: tuple[Layer, ...] = ()
    pieces: int = 1
    inner: tuple[str, ...] = ()
    times: int = 1
