"""What the unit tests share: one thread, drawn cases, and cases written by hand as the code that they print."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from msgspec.structs import replace

from gradcheck_plus.case import (
    Case,
    Container,
    Cotangent,
    Environment,
    Name,
    Parameter,
    Primal,
    Program,
    Scalar,
    Segment,
    Spec,
    Statement,
    Tree,
    Value,
)
from gradcheck_plus.case.trees import names, walk
from gradcheck_plus.operations import CATALOGUE, results_of
from gradcheck_plus.strategies import cases
from gradcheck_plus.subject import KINDS, Kind


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """The tensors are small: more threads would only wait for each other."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def drawn() -> Mapping[Kind, Sequence[Case]]:
    """Four hundred cases for each kind of subject, the same ones in every run."""
    return {kind: list(_drawn(kind)) for kind in KINDS}


def _drawn(kind: Kind) -> list[Case]:
    found: list[Case] = []

    @seed(20)
    @settings(max_examples=400, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(case=cases(kind))
    def keep(case: Case) -> None:
        found.append(case)

    keep()
    return found


# cases written by hand --------------------------------------------------------------------------------------------------

_LINE = re.compile(
    r"(?P<results>[\w, ]+) = (?P<operation>\w+)\((?P<operands>[\w, ]+)(?:; (?P<attributes>[^)]+))?\)"
    r"(?: @ (?P<module>\w+))?(?P<flags>(?: frozen| no_grad)*)"
)
X0 = Primal("x0", Spec((2, 3), requires_grad=True))


@pytest.fixture(scope="session")
def write() -> Callable[..., Case]:
    """The function `written`: a case written as the lines of its program."""
    return written


def written(
    *segments: str | Sequence[str],
    primals: Sequence[Primal] = (X0,),
    parameters: Sequence[Parameter] = (),
    cotangents: Sequence[Cotangent] | None = None,
    changes: Mapping[int, Mapping[str, Any]] | None = None,
    dtype: str = "float32",
    **environment: Any,
) -> Case:
    """Return a case, each of its segments written as one line or as several.

    A line is ``h0 = dropout(x0; p=0.5) @ module frozen no_grad``; everything behind the operands may be left out. Segments are
    passed what they use and return what nothing of their own uses, or what a later one uses; `changes` says otherwise, by the
    number of the segment. Every output that requires grad and that no later segment uses receives a cotangent.
    """
    specs = {p.name: p.spec for p in primals}
    specs |= {p.name: Spec(p.shape, dtype, p.trainable and not p.buffer) for p in parameters}
    lines = [[line] if isinstance(line, str) else list(line) for line in segments]
    owned: set[str] = set()
    blocks = [[_statement(line, specs, owned, environment.get("autocast", "")) for line in block] for block in lines]
    own = {p.name for p in parameters}
    cut = [_segment(block, blocks[index + 1 :], own) for index, block in enumerate(blocks)]
    cut = [replace(segment, **(changes or {}).get(index, {})) for index, segment in enumerate(cut)]
    program = Program(tuple(cut), tuple(parameters), dtype)
    given = tuple(_cotangents(cut, specs)) if cotangents is None else tuple(cotangents)
    return Case(program, tuple(primals), given, Environment(**environment))


def _statement(line: str, specs: dict[str, Spec], owned: set[str], autocast: str) -> Statement:
    found = _LINE.fullmatch(line)
    assert found, line
    operation = CATALOGUE[found["operation"]]
    operands = tuple(name.strip() for name in found["operands"].split(","))
    seen = tuple(specs[name] for name in operands)
    attributes: dict[str, Scalar] = {k: next(iter(choices(seen[0]))) for k, choices in operation.attributes.items()}
    for pair in (found["attributes"] or "").split(", ") if found["attributes"] else ():
        name, _, value = pair.partition("=")
        attributes[name] = eval(value)
    module = (found["module"] or f"{operation.name}{len(owned)}") if operation.setup else ""
    frozen, no_grad = "frozen" in found["flags"], "no_grad" in found["flags"]
    grad = operation.differentiable and not no_grad
    grad = grad and ((operation.trainable and not frozen) or any(spec.requires_grad for spec in seen))
    results = []
    made = results_of(operation, seen, attributes, autocast=autocast)
    for name, (shape, result) in zip(found["results"].split(", "), made, strict=True):
        spec = Spec(tuple(shape), result)
        specs[name] = replace(spec, requires_grad=grad and spec.floating)
        results.append(Value(name, specs[name]))
    owner = module not in owned
    if module:
        owned.add(module)
    pairs = tuple(attributes.items())
    return Statement(operation.name, tuple(results), operands, seen, pairs, module, owner, frozen and owner, no_grad)


def _segment(block: Sequence[Statement], later: Sequence[Sequence[Statement]], own: set[str]) -> Segment:
    made = [r.name for s in block for r in s.results]
    used = {o for s in block for o in s.operands}
    wanted = {o for other in later for s in other for o in s.operands}
    passed = dict.fromkeys(o for s in block for o in s.operands if o not in own and o not in made)
    returned: list[Tree] = [Name(n) for n in made if n not in used or n in wanted]
    output = returned[0] if len(returned) == 1 else Container("tuple", tuple(returned))
    return Segment(tuple(block), tuple(map(Name, passed)), (), output)


def _cotangents(segments: Sequence[Segment], specs: Mapping[str, Spec]) -> list[Cotangent]:
    drawn: list[Cotangent] = []
    for index, segment in enumerate(segments):
        later = set(names(*(tree for s in segments[index + 1 :] for tree in s.inputs)))
        for path, leaf in walk(segment.output):
            if isinstance(leaf, Name) and specs[leaf.name].requires_grad and leaf.name not in later:
                drawn.append(Cotangent(index, path, 11 + len(drawn)))
    return drawn
