"""How alike neighbouring cases are, with Hypothesis's mutants and without.

    python benchmarks/diversity.py [CASES]

Hypothesis follows each example with mutants of it, in which one draw is copied over another; `cases` is drawn inside a
collection of unique elements, where it does not. Printed for both: how many cases have at most two traits that the one
before has not, or the other way round, and how many different sets of traits there are.
"""

import itertools
import sys

from gradcheck_plus.campaign.block import generated
from gradcheck_plus.campaign.plan import Block
from gradcheck_plus.settings import BLOCK, DTYPES
from gradcheck_plus.strategies.cases import _cases, cases
from gradcheck_plus.traits import drawable, traits


def drawn(strategy, count):
    found = []

    def test(case):
        found.append(traits(case))

    for number in range(count // BLOCK):
        generated(Block(number, 1, BLOCK), strategy, test)
    return found


def main(count=1000):
    mutated = _cases("checkpoint", drawable("checkpoint"), (), None, DTYPES, 5)
    for name, strategy in (("with mutants", mutated), ("as it is", cases())):
        found = drawn(strategy, count)
        alike = sum(len(a ^ b) <= 2 for a, b in itertools.pairwise(found))
        print(f"{name}: {alike} of {len(found)} cases are like the one before; {len(set(found))} different sets of traits")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
