"""What a check of a method finds: verdicts, and the figures of its sanity checks."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """One requirement of the contract on one task."""

    requirement: str
    task: str
    kept: bool
    detail: str


@dataclass(frozen=True)
class CurvePoint:
    """How like the map of the trained network those are with random weights from the top down to `layer`."""

    output: str
    layer: str
    absolute: float
    signed: float


@dataclass(frozen=True)
class ProgramPoint:
    """How like effects and claims are under the true program and under the one scrambled with seed `program`.

    Attributes:
        effects: rank correlation of the sizes of the effects: how far the truth itself has changed.
        absolute, signed: rank correlation of the claims, of their sizes and with signs.
    """

    output: str
    program: int
    effects: float
    absolute: float
    signed: float


@dataclass(frozen=True)
class Findings:
    """The verdicts, how maps of networks change while weights are randomised, and claims while programs change."""

    verdicts: tuple[Verdict, ...]
    randomisation: tuple[CurvePoint, ...] = ()
    programs: tuple[ProgramPoint, ...] = ()

    def __add__(self, other: "Findings") -> "Findings":
        return Findings(
            self.verdicts + other.verdicts,
            self.randomisation + other.randomisation,
            self.programs + other.programs,
        )


def not_applicable(task: str, reason: str) -> Verdict:
    """Nothing to keep here, and why."""
    return Verdict("applies", task, kept=True, detail=f"not applicable: {reason}")
