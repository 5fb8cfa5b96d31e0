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
from harness.sanity import STILL_ALIKE, has_changed, similarity
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
    telling = measure_programs(str(path), lambda program: _changed(key, program), limits)
    wanted = {
        asked: {each: (_put_under(asked, key, each, path), each.program) for each in telling.get(asked.output_name, ())}
        for asked in claims
    }
    answers = ask_scrambled([each for there in wanted.values() for each in there.values()], limits)
    found = [
        compared(
            tasks[asked],
            claim,
            {each.program: _alike(key, each)[asked.output_name] for each in wanted[asked]},
            {each.program: answers[there] for each, there in wanted[asked].items()},
            measures=entry.access == "world",
        )
        for asked, claim in claims.items()
    ]
    return sum(found, Findings(()))


def _put_under(asked: Asked, key: AnswerKey, program: OtherProgram, path: Path) -> Asked:
    """The same about the question of another program, whose file is written beside that of the true one."""
    scrambled = path.with_name(f"program-{program.program}.npz")
    scrambled.write_bytes(program.question(key.question).to_bytes())
    return asked._replace(question_path=str(scrambled))


def _alike(key: AnswerKey, program: OtherProgram) -> dict[str, float]:
    """How like the effects under two programs are, per output."""
    return {
        output.name: similarity(known, program.effects_on(row)).absolute
        for row, (output, known) in enumerate(zip(key.question.outputs, key.effects, strict=True))
    }


def _changed(key: AnswerKey, program: OtherProgram) -> list[str]:
    """The outputs on which the effects are others: there a program can tell."""
    return [output for output, alike in _alike(key, program).items() if alike < STILL_ALIKE]


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
    changed = has_changed(float(np.mean([point.absolute for point in points])), known, others)
    detail = ("the claim is constant; " if is_constant(known) else "") + _in_short(
        points, changed=changed, measures=measures
    )
    return Findings((Verdict(ON_PROGRAM, task, kept=changed or not measures, detail=detail),), programs=tuple(points))


def _in_short(points: Sequence[ProgramPoint], *, changed: bool, measures: bool) -> str:
    correlations = " ".join(f"{point.absolute:.2f}" for point in points)
    text = f"claims under other programs correlate {correlations} with this one"
    if measures:
        return f"{text} (must be below {STILL_ALIKE} on average)"
    if changed:
        return f"{text} (without a limit: it only reads)"
    return f"{text}: it stays as it is, as a read must: it explains the look-up, not the program"
