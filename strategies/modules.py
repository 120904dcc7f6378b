"""Cases of a user's own module: flags, environments and cotangents around a sample call."""

from collections.abc import Iterable, Sequence

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from gradcheck_plus.case import Case, ModuleProgram, Primal
from gradcheck_plus.strategies.cases import allowed_traits
from gradcheck_plus.strategies.chooser import Chooser
from gradcheck_plus.strategies.cotangents import cotangents
from gradcheck_plus.strategies.environments import environments
from gradcheck_plus.strategies.primals import Precision
from gradcheck_plus.strategies.swarms import swarms

#: The traits that a sample call leaves open.
TRAITS = (
    "mixed-requires-grad", "no-grad-input", "none-cotangent", "zero-cotangent", "one-hot-cotangent", "expanded-cotangent",
    "strided-cotangent", "eval", "autocast-bfloat16", "autocast-float16", "draw-before", "draw-after", "existing-grad",
    "second-backward", "two-forwards", "accumulation", "parameter-hook", "input-hook", "post-accumulate-hook", "forward-hook",
)  # fmt: skip


def module_cases(
    program: ModuleProgram,
    primals: Sequence[Primal],
    *,
    traits: Iterable[str] | None = None,
    without: Iterable[str] = (),
    dtypes: Iterable[str] = ("float32", "float64", "bfloat16", "float16"),
) -> st.SearchStrategy[Case]:
    """Draw cases of a user's own module.

    What the module is passed is the sample call; which of its floating inputs require grad, what surrounds it and what its
    outputs receive is drawn. Shrinks towards every floating input requiring grad, one forward and one backward.

    Args:
        program: the module and its sample call.
        primals: the inputs of the sample call.
        traits: the traits to aim at; all that a sample call leaves open by default.
        without: traits not to aim at.
        dtypes: the dtypes that autocast may have.
    """
    allowed = [t for t in allowed_traits("checkpoint", traits, without, dtypes) if t in TRAITS]
    return _cases(program, tuple(primals), tuple(allowed))


@st.composite
def _cases(draw: DrawFn, program: ModuleProgram, primals: tuple[Primal, ...], allowed: tuple[str, ...]) -> Case:
    on, eager = draw(swarms(allowed))
    c = Chooser(draw, on, eager=eager)
    autocast = next((d for d in ("bfloat16", "float16") if c.flag(f"autocast-{d}")), "")
    of = Precision(program.dtype, autocast if program.dtype == "float32" else "")
    none = c.flag("no-grad-input", 40)
    drawn = tuple(_flagged(c, p, grad=not none) for p in primals)
    own = msgspec.structs.replace(program, draws=c.integer(1, 3) if c.flag("draw-before") else 0)
    specs = {p.name: p.spec for p in drawn} | {r.name: r.spec for r in program.results}
    environment = environments(c, of, "checkpoint", own.segments, trainable=False)
    return Case(own, drawn, cotangents(c, own.segments, specs), environment)


def _flagged(c: Chooser, p: Primal, *, grad: bool) -> Primal:
    if not p.spec.floating:
        return p
    wanted = not grad if c.flag("mixed-requires-grad", 40) else grad
    return msgspec.structs.replace(p, spec=msgspec.structs.replace(p.spec, requires_grad=wanted))
