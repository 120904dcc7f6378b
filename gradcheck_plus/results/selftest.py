"""What the self test says, as data: the JSON of ``selftest --json`` is these structs."""

from typing import Any

import msgspec

from gradcheck_plus.results.structs import FAULT, INCONCLUSIVE, MATCH, SCHEMA, Tool


class PlantedFault(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one planted fault.

    Attributes:
        name, kind: those of the fault.
        found: was there a case on which it and plain autograd part, and on which its twin does not?
        cases_to_find: the number of that case, 0 if there was none.
        run: how many cases were run.
        statements, smallest: the size of the shrunk program, and of the smallest that is known to show the fault.
        trigger: the traits that the shrunk case needs.
        twin: what was said of the twin on that case: ``match``, ``refused`` or ``fault``; empty if there was none.
        message: what was said of the fault.
    """

    name: str
    kind: str
    found: bool
    run: int
    smallest: int
    cases_to_find: int = 0
    statements: int = 0
    trigger: tuple[str, ...] = ()
    twin: str = ""
    message: str = ""


class Twin(msgspec.Struct, frozen=True, kw_only=True):
    """What was said of a correct implementation, in as many cases.

    Attributes:
        target, kind, contract: what was checked, and by what.
        verdict: ``match``, if all is well.
        run, judged: how many cases were run, and how many said something.
        accusations: the messages of the faults that were seen, which are false alarms.
    """

    target: str
    kind: str
    contract: str
    verdict: str
    run: int
    judged: int
    accusations: tuple[str, ...] = ()


class SelfTest(msgspec.Struct, kw_only=True):
    """The report of a self test. Everything outside `volatile` is the same for the same arguments, versions and machine.

    Attributes:
        asked: how many planted faults and twins there were to check; fewer are listed if it was interrupted.
    """

    schema: int = SCHEMA
    exit_code: int = MATCH
    tool: Tool
    seed: int
    max_examples: int
    asked: int
    faults: list[PlantedFault] = msgspec.field(default_factory=list)
    twins: list[Twin] = msgspec.field(default_factory=list)
    volatile: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def missed(self) -> list[str]:
        """The names of the planted faults that were not found."""
        return [fault.name for fault in self.faults if not fault.found]

    @property
    def accused(self) -> list[str]:
        """The targets of the twins that were accused, or of which nothing could be said."""
        return [twin.target for twin in self.twins if twin.verdict != "match"]

    def judge(self) -> int:
        """Note and return the exit code: 1 if a fault was missed or a twin accused, else 3 if not all was checked, else 0."""
        wrong, whole = self.missed or self.accused, len(self.faults) + len(self.twins) == self.asked
        self.exit_code = FAULT if wrong else MATCH if whole else INCONCLUSIVE
        return self.exit_code
