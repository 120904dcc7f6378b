"""The fault zoo: planted faulty implementations, each with its corrected twin.

It says whether the detector works: every fault must be found, and every twin must pass. One file holds one family, and every
file of this folder is imported, so that to plant a fault is to add an entry or a file and nothing else. A fault is a subclass
of a correct implementation that overrides one method, so that what is wrong is all there is to read.

Importing this package imports torch.
"""

import importlib
import pkgutil

from gradcheck_plus.zoo.planted import ZOO, Planted

__all__ = ["ZOO", "Planted"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
