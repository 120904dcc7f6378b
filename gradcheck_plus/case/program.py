"""Programs: typed dataflow, one statement a line, cut into segments."""

import math
from typing import Literal

import msgspec

from gradcheck_plus.case.trees import Scalar, Tree

#: "float" is a floating dtype that only the run decides (what autocast makes of a value).
FLOATS = ("float32", "float64", "bfloat16", "float16", "float")
LOW = ("bfloat16", "float16", "float")

Shape = tuple[int, ...]


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a value before anything runs. `dtype` is torch's name of it, or ``"python"``."""

    shape: Shape
    dtype: str = "float32"
    requires_grad: bool = False

    @property
    def floating(self) -> bool:
        """Is it a floating-point tensor?"""
        return self.dtype in FLOATS

    @property
    def low(self) -> bool:
        """May it be of less precision than float32?"""
        return self.dtype in LOW

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def last(self) -> int:
        """The size of the last dimension."""
        return self.shape[-1]

    @property
    def channels(self) -> int:
        """The size of the second dimension."""
        return self.shape[1]

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A named value and what is known of it."""

    name: str
    spec: Spec


class Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line: ``results = operation(operands, attributes)``.

    `module` is the attribute that holds the operation's module, if it has one; `owner` says whether this statement
    constructs it or shares one that an earlier statement constructed. `frozen` belongs to the owner.
    """

    operation: str
    results: tuple[Value, ...]
    operands: tuple[str, ...]
    specs: tuple[Spec, ...]
    attributes: tuple[tuple[str, Scalar], ...] = ()
    module: str = ""
    owner: bool = True
    frozen: bool = False
    no_grad: bool = False


class Parameter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tensor that a segment owns and uses directly: a parameter or, with `buffer`, a buffer."""

    name: str
    shape: Shape
    segment: int
    trainable: bool = True
    buffer: bool = False


class Segment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A cut of the program that is called as one function.

    `form` is what is called: the module, a function that calls it, or a bare ``nn.Sequential``. `region` says whether a
    checkpoint wraps it (a pipeline takes every segment as a stage). `draws` is how many random numbers the caller draws
    just before; `rebinds` names the values that the caller replaces in its own dicts and lists just after.
    """

    statements: tuple[Statement, ...]
    args: tuple[Tree, ...]
    kwargs: tuple[tuple[str, Tree], ...]
    output: Tree
    form: Literal["module", "function", "sequential"] = "module"
    region: bool = True
    draws: int = 0
    rebinds: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[Tree, ...]:
        """All argument trees, positional ones first."""
        return (*self.args, *(tree for _, tree in self.kwargs))


class Program(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="program"):
    """A generated module; `dtype` is that of its parameters and of most of its primals."""

    segments: tuple[Segment, ...]
    parameters: tuple[Parameter, ...] = ()
    dtype: str = "float32"

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The statements of all segments, in order."""
        return tuple(s for segment in self.segments for s in segment.statements)


class ModuleProgram(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="module"):
    """A user's own module as a program of one segment: `target` makes it, `inputs` makes a sample call.

    `output` has the sample call's output structure, each tensor under a name; `results` says what they are. `features` are the
    traits that its operations bring, as far as the sample call shows them.
    """

    target: str
    inputs: str
    args: tuple[Tree, ...]
    kwargs: tuple[tuple[str, Tree], ...]
    output: Tree
    results: tuple[Value, ...]
    features: tuple[str, ...] = ()
    draws: int = 0
    dtype: str = "float32"

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The one segment, which has no statements of its own."""
        return (Segment((), self.args, self.kwargs, self.output, draws=self.draws),)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """None: what the module does inside is not known."""
        return ()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """None that the program owns."""
        return ()
