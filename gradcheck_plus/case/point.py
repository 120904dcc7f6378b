"""Where a VJP is taken and what it is applied to: primals and cotangents."""

from typing import Literal

import msgspec

from gradcheck_plus.case.program import Spec
from gradcheck_plus.case.trees import Scalar

#: How a tensor lies in memory. The last three are not leaves: views or results of a leaf called ``root``.
Layout = Literal["contiguous", "transposed", "strided", "offset", "expanded", "view", "expanded-view", "computed"]
LEAF_LAYOUTS: tuple[Layout, ...] = ("contiguous", "transposed", "strided", "offset", "expanded")
NON_LEAF_LAYOUTS: tuple[Layout, ...] = ("view", "expanded-view", "computed")

#: Values: distinct and never zero; with zeros and ties; all zero; large; tiny.
Fill = Literal["generic", "integers", "zero", "large", "tiny"]


class Primal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One input value of the function.

    `alias` names a primal whose tensor is passed once more, `share` one whose storage holds this one too. A plain Python
    value has ``dtype="python"`` and stands in `constant`; a tensor of a user's sample call has its path in `sample`.
    """

    name: str
    spec: Spec
    seed: int = 1
    layout: Layout = "contiguous"
    fill: Fill = "generic"
    alias: str = ""
    share: str = ""
    constant: Scalar = None
    sample: str = ""

    @property
    def tensor(self) -> bool:
        """Is it a tensor?"""
        return self.spec.dtype != "python"

    @property
    def leaf(self) -> bool:
        """Is it a leaf whose `.grad` is read?"""
        return self.spec.requires_grad and self.layout in LEAF_LAYOUTS and not self.alias

    @property
    def reusable(self) -> bool:
        """May its tensor receive the values of the next forward?"""
        return self.tensor and self.spec.floating and self.layout == "contiguous" and not self.alias and not self.share


class Cotangent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an output receives: the leaf at `path` of the output of segment `segment`. Outputs without one receive nothing."""

    segment: int
    path: str = ""
    seed: int = 1
    layout: Layout = "contiguous"
    fill: Literal["generic", "one-hot", "zero"] = "generic"
