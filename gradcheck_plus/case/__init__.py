"""A case, as pure data: program, primals, cotangents, environment, plan.

Everything here is a frozen `msgspec.Struct`: hashable, comparable, and the same after a trip through JSON. Nothing imports
torch, so that a report, a command line or another process can read a case without paying for it.
"""

from gradcheck_plus.case.call import Call, Variation
from gradcheck_plus.case.case import Case
from gradcheck_plus.case.environment import Environment
from gradcheck_plus.case.plan import Layer, Plan
from gradcheck_plus.case.point import Cotangent, Primal
from gradcheck_plus.case.program import ModuleProgram, Parameter, Program, Segment, Spec, Statement, Value
from gradcheck_plus.case.trees import Constant, Container, Name, Scalar, Tree

__all__ = [
    "Call",
    "Case",
    "Constant",
    "Container",
    "Cotangent",
    "Environment",
    "Layer",
    "ModuleProgram",
    "Name",
    "Parameter",
    "Plan",
    "Primal",
    "Program",
    "Scalar",
    "Segment",
    "Spec",
    "Statement",
    "Tree",
    "Value",
    "Variation",
]
