"""Does a claim depend on the program? The method is asked about the same state under others, see `oracle.scrambled`.

Only programs under which the effects themselves are others can tell. What a method measures should change with them;
what it reads off the output's own byte can't, whatever the program does: a read is a look-up that stands in for it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from harness.findings import Findings, ProgramPoint, Verdict
from harness.manifest import MethodEntry
from harness.pool import Limits
from harness.sanity import STILL_ALIKE, similarity
from harness.scores import is_constant
from harness.trial import MOST_PROGRAMS, Answer, ask_scrambled, measure_programs
from harness.units import Claim
from harness.work import Asked
from oracle.effects import AnswerKey
from oracle.scrambled import OtherProgram

ON_PROGRAM = "its claim depends on the program"


def check_program(
    entry: MethodEntry, key: AnswerKey, claims: Mapping[Asked, Claim], tasks: Mapping[Asked, str], limits: Limits
) -> Findings:
    """A verdict per claim about the machine, and how like the claims under each program are."""
    path = Path(next(iter(claims)).question_path)
    names = [output.name for output in key.question.outputs]
    programs = measure_programs(str(path), lambda program: any(map(_tells, _alike(key, program))), limits)
    wanted: dict[Asked, dict[int, tuple[Asked, int]]] = {asked: {} for asked in claims}
    alike: dict[int, list[float]] = {}
    for program in programs:
        alike[program.program] = _alike(key, program)
        scrambled = path.with_name(f"program-{program.program}.npz")
        scrambled.write_bytes(program.question(key.question).to_bytes())
        for asked in claims:
            if _tells(alike[program.program][names.index(asked.output_name)]):
                there = asked._replace(question_path=str(scrambled))
                wanted[asked][program.program] = (there, program.program)
    answers = ask_scrambled([each for there in wanted.values() for each in there.values()], limits)
    found = [
        compared(
            tasks[asked],
            claim,
            {program: alike[program][names.index(asked.output_name)] for program in wanted[asked]},
            {program: answers[there] for program, there in wanted[asked].items()},
            measures=entry.access == "world",
        )
        for asked, claim in claims.items()
    ]
    return sum(found, Findings(()))


def _alike(key: AnswerKey, program: OtherProgram) -> list[float]:
    """How like the effects under two programs are, per output."""
    return [similarity(known, program.effects_on(output)).absolute for output, known in enumerate(key.effects)]


def _tells(alike: float) -> bool:
    return alike < STILL_ALIKE


def compared(
    task: str, claim: Claim, effects: Mapping[int, float], answers: Mapping[int, Answer], *, measures: bool
) -> Findings:
    """The verdict on one claim, by those that were made under other programs; `effects` are their similarities."""
    if not answers:
        reason = f"not applicable: none of {MOST_PROGRAMS} scrambled programs runs and has other effects here"
        return Findings((Verdict(ON_PROGRAM, task, kept=True, detail=reason),))
    known = np.array(claim.values)
    points, others = [], []
    for program, answer in answers.items():
        if answer.claim is None:
            reason = f"under program {program}: {answer.report.text}"
            return Findings((Verdict(ON_PROGRAM, task, kept=False, detail=reason),))
        others.append(np.array(answer.claim.values))
        alike = similarity(known, others[-1])
        points.append(ProgramPoint(claim.task.output, program, effects[program], alike.absolute, alike.signed))
    changed = float(np.mean([point.absolute for point in points])) < STILL_ALIKE
    stays = all(np.array_equal(known, each) for each in others)
    kept = not measures or (changed and not stays)
    detail = _in_short(points, measures=measures) + ("; the claim is constant" if is_constant(known) else "")
    return Findings((Verdict(ON_PROGRAM, task, kept=kept, detail=detail),), programs=tuple(points))


def _in_short(points: Sequence[ProgramPoint], *, measures: bool) -> str:
    correlations = " ".join(f"{point.absolute:.2f}" for point in points)
    limit = (
        f"kept if their mean is below {STILL_ALIKE}"
        if measures
        else "it reads and measures nothing, so it explains the look-up, not the program"
    )
    return f"rank correlation {correlations} under {len(points)} other programs; {limit}"
