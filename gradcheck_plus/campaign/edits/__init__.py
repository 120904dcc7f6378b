"""Edits: for a trait, the same case without it.

They show which traits a fault needs: where the fault stays when the trait is gone, the trait is no part of what triggers it. An
edit that cannot be made leaves the case as it is. One file a theme, as in `gradcheck_plus.traits`.
"""

from gradcheck_plus.campaign.edits import environment, inputs, outputs, plans, programs
from gradcheck_plus.campaign.edits.common import Edit

#: Tried in this order: the surroundings first, then the function, then what it is passed, then what comes out. Where a trait
#: has several edits, one that keeps the fault is enough.
EDITS: tuple[tuple[str, Edit], ...] = (*plans.EDITS, *environment.EDITS, *programs.EDITS, *inputs.EDITS, *outputs.EDITS)

__all__ = ["EDITS", "Edit"]
