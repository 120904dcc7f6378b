"""How much of its error budget a correct subject uses.

    python benchmarks/tolerance.py [CASES]

For every gradient that is not bit for bit the reference's, in cases where it need not be, against torch's reentrant checkpoint:
the error against the float64 truth over what a correct one may show. 1 is the limit.
"""

import sys

from gradcheck_plus import tolerance
from gradcheck_plus.campaign.block import generated
from gradcheck_plus.campaign.judging import coarsest, truth
from gradcheck_plus.campaign.plan import Block
from gradcheck_plus.execute import execute, reference
from gradcheck_plus.expectations import contract
from gradcheck_plus.settings import BLOCK
from gradcheck_plus.strategies import cases
from gradcheck_plus.subjects import SUBJECTS
from gradcheck_plus.traits import exact, traits


def ratios(case, subject):
    """Yield, for every gradient that differs in a bit, its error over its budget."""
    plain, other = execute(case, reference("checkpoint")), execute(case, subject)
    if plain.raised or other.raised:
        return
    differing = [
        (key, a, other.tensors[key])
        for key, a in plain.tensors.items()
        if key[0] in ("primal", "parameter") and a is not None and other.tensors.get(key) is not None
    ]
    differing = [d for d in differing if d[1].shape == d[2].shape and not tolerance.equal(d[1], d[2])]
    true = truth(case, subject, "cpu") if differing else None
    if true is None:
        return
    scale = max((tolerance.largest(g) for g in true.gradients()), default=0.0)
    for key, a, b in differing:
        t = true.tensors.get(key)
        if t is not None:
            unit = tolerance.UNIT[coarsest(case)]
            limit = tolerance.allowed(tolerance.gap(a, t), unit, tolerance.largest(t), scale)
            yield tolerance.gap(b, t) / limit


def main(count=5000):
    subject = SUBJECTS["torch-checkpoint-reentrant"].subject
    pointless = contract(subject.contract).pointless
    excused = {e.trait for e in contract(subject.contract).expectations}
    honest = []

    def test(case):
        found = traits(case)
        if exact(found) or excused & found:
            return
        honest.extend(ratios(case, subject))

    for number in range(count // BLOCK):
        generated(Block(number, 1, BLOCK), cases(without=pointless), test)
    honest.sort()
    print(f"{len(honest)} gradients of torch's reentrant checkpoint differ in a bit; error over budget: ", end="")
    print(f"median {honest[len(honest) // 2]:.2g}, largest {honest[-1]:.2g}" if honest else "none")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
