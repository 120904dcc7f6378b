"""The whole Jacobian, entry by entry, by central differences."""

from gradcheck_plus.functions.checks.check import Check, Scene
from gradcheck_plus.functions.numeric import jacobian
from gradcheck_plus.functions.wording import number


def check(scene: Scene):
    """Compare every entry."""
    if not scene.double:
        scene.refuse("differences need float64")
    wrong, kinks, entries = jacobian(scene.point, scene.op)
    scene.kinks += kinks
    scene.judged += entries
    if wrong:
        slot, element, output, expected, got = wrong[0]
        name = scene.names[slot]
        count = f"; {len(wrong)} of {entries} entries are wrong" if entries > 1 else ""
        said = f"derivative of output element {output} by `{name}` at {element} is wrong{scene.where}"
        said += f": got {number(got)}, expected {number(expected)} by central differences{count}"
        yield scene.fault("value", name, said, expected=number(expected), got=number(got))


CHECK = Check(
    "jacobian",
    "every entry of the Jacobian is that of central differences",
    check,
    source="pytorch/pytorch#59615",
    rank=7,
    often=2,
)
