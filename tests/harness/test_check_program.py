"""`veritari methods check` on the machine: does a claim change when the same state is put under another program?"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from games.catalog import game
from harness import work
from harness.check import check_method
from harness.check_program import ON_PROGRAM, compared
from harness.findings import ProgramPoint, Verdict
from harness.guard import Report, ended_after
from harness.pool import Job, Limits, run_jobs
from harness.trial import MOST_PROGRAMS, Answer, Trial, answers, measure_programs
from harness.units import Claim, TaskId
from oracle.effects import measure
from oracle.protocol import protocol
from oracle.scrambled import ScrambledRollouts, measure_program
from tests.harness.commands import plugin

LIMITS = Limits(workers=1, timeout_seconds=60.0, memory_gib=4.0)
TASKS = ("pong ram[54]", "pong changed_pixels")

ale = pytest.mark.ale


def check(spec):
    """The findings on the machine, about other programs only: verdicts by task, and points."""
    found = check_method(spec, Trial("ram-v1", "pong", seed=0, subjects=("machine",)), LIMITS)
    verdicts = {each.task: each for each in found.verdicts if each.requirement == ON_PROGRAM}
    return verdicts, found.programs


@pytest.fixture(scope="module")
def question(tmp_path_factory):
    """Pong's question as a file."""
    path = tmp_path_factory.mktemp("question") / "machine.npz"
    path.write_bytes(measure(protocol("ram-v1"), game("pong"), 0).question.to_bytes())
    return path


@ale
def test_what_is_measured_changes_with_the_program():
    """Occlusion changes as the effects do, on both outputs, under four programs each."""
    verdicts, points = check("occlusion")
    assert dict.fromkeys(TASKS, True) == {task: verdict.kept for task, verdict in verdicts.items()}
    assert {"ram[54]": 4, "changed_pixels": 4} == {
        output: sum(point.output == output for point in points) for output in ("ram[54]", "changed_pixels")
    }
    assert all(point.effects < 0.9 and point.absolute < 0.9 for point in points)


@ale
def test_a_look_up_stays_and_is_told_so():
    """The one-hot read of a byte is the same under every program; that is no fault of the method, and is said."""
    verdicts, points = check("vanilla_gradient")
    verdict = verdicts["pong ram[54]"]
    assert verdict.kept
    assert verdict.detail == (
        "claims under other programs correlate 1.00 1.00 1.00 1.00 with this one: "
        "it stays as it is, as a read must: it explains the look-up, not the program"
    )
    alike = [(point.absolute, point.signed) for point in points if point.output == "ram[54]"]
    assert [pytest.approx((1.0, 1.0))] * 4 == alike


@ale
def test_a_method_that_only_pretends_to_measure_is_found_out():
    """It runs rollouts and then claims what RAM holds: the same under every program."""
    verdicts, _ = check(plugin("cheating:repeats_ram"))
    assert dict.fromkeys(TASKS, False) == {task: verdict.kept for task, verdict in verdicts.items()}
    assert verdicts[TASKS[0]].detail == (
        "claims under other programs correlate 1.00 1.00 1.00 1.00 with this one (must be below 0.9 on average)"
    )


@ale
def test_programs_that_hang_or_draw_nothing_are_passed_over(question):
    """Of each output the first four that tell about it, in the order of their seeds; the same ones each time."""
    told = {1: ["a"], 4: ["a", "b"], 6: ["b"], 7: ["a"], 9: ["a", "b"], 12: ["a", "b"], 15: ["a"]}
    found = measure_programs(str(question), lambda program: told.get(program.program, []), LIMITS)
    assert {"a": [1, 4, 7, 9], "b": [4, 6, 9, 12]} == {
        output: [each.program for each in programs] for output, programs in found.items()
    }


MEASURE = """
import sys
from harness import trial, work
from harness.pool import Limits

found = trial.results({0: (work.measure_scrambled, (sys.argv[1], 2))}, Limits(1, 60.0, 4.0))
print(found[0].report.text)
"""


@ale
def test_a_program_that_hangs_while_it_is_loaded_leaves_no_file(tmp_path):
    """Program 2 of Breakout never returns from loading; its process is ended, and the temporary folder is empty."""
    path = tmp_path / "machine.npz"
    path.write_bytes(measure(protocol("ram-v1"), game("breakout"), 0).question.to_bytes())
    # The path of a socket may have about a hundred characters, and pytest's folders have most of them.
    temporary = Path(tempfile.mkdtemp())
    finished = subprocess.run(
        [sys.executable, "-c", MEASURE, path],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert ("the process ended (signal 26)\n", "") == (finished.stdout, finished.stderr)
    assert [] == list(temporary.rglob("*"))
    temporary.rmdir()


@ale
def test_an_output_that_no_program_tells_about_is_left_out(question):
    """After all seeds were tried."""
    asked = set()
    found = measure_programs(str(question), lambda program: asked.add(program.program) or (["a"]), LIMITS)
    assert ["a"] == list(found)
    assert max(asked) >= MOST_PROGRAMS - 4


@ale
def test_a_claim_about_another_program_uses_its_rollouts(question):
    """Occlusion claims what zeros do there: of the true program first, then of another in the same worker."""
    asked = work.Asked("occlusion", str(question), "changed_pixels", 0)
    wanted = {None: (work.claim, asked), 7: (work.claim_scrambled, (asked, 7))}
    true, other = (answer.claim.values for answer in answers(wanted, LIMITS).values())
    pong = measure(protocol("ram-v1"), game("pong"), 0)
    rollouts = ScrambledRollouts(game("pong"), 7, pong.question.trace, pong.question.ram)
    program = measure_program(protocol("ram-v1"), game("pong"), pong.question, rollouts)
    zeros = [index for index, cause in enumerate(pong.question.causes) if cause.label.endswith(":occlude")]
    assert pong.effects[1][zeros].tolist() == [true[index] for index in zeros]
    assert program.effects_on(1)[zeros].tolist() == [other[index] for index in zeros]
    assert true != other


def endless(answer):
    """Compute without end in C, where Python can't interrupt."""
    with ended_after(0.2):
        sum(iter(int, 1))
    return Report("ok", answer, 0.0)


def brief(answer):
    """Finish in time, and compute on."""
    with ended_after(0.05):
        pass
    np.linalg.svd(np.ones((600, 600)))
    return Report("ok", answer, 0.0)


def test_a_block_that_computes_for_too_long_ends_its_process():
    """Its own process only; after the block there is no limit any more."""
    reports = {}
    jobs = [Job(endless, ("",)), Job(brief, ("there",))]
    run_jobs(jobs, LIMITS, reports.__setitem__)
    assert [("failed", "the process ended (signal 26)"), ("ok", "there")] == [reports[job][:2] for job in jobs]


def answered(*values):
    """A claim that came of asking once."""
    task = TaskId(subject="machine", game="pong", state=0, output="y", regime="content")
    return Answer(Report("ok", "", 0.0), Claim(task=task, method="any", status="ok", values=values))


def verdict(known, others, *, measures=True):
    """The findings on one claim, under as many programs as there are other answers."""
    found = dict(enumerate(others))
    return compared("pong y", known.claim, dict.fromkeys(found, 0.5), found, measures=measures)


def test_the_mean_over_programs_decides():
    """One program under which the claim is another is not enough where the rest leave it as it was."""
    known, same, other = answered(1.0, 2.0, 3.0), answered(2.0, 4.0, 6.0), answered(3.0, 2.0, 1.0)
    mixed = verdict(known, [same, other])
    assert (ProgramPoint("y", 0, 0.5, 1.0, 1.0), ProgramPoint("y", 1, 0.5, -1.0, -1.0)) == mixed.programs
    assert [True] == [each.kept for each in mixed.verdicts]
    assert [False] == [each.kept for each in verdict(known, [same, same]).verdicts]
    assert [True] == [each.kept for each in verdict(known, [same, same], measures=False).verdicts]
    [read] = verdict(known, [other], measures=False).verdicts
    assert read.detail == "claims under other programs correlate -1.00 with this one (without a limit: it only reads)"


def test_a_constant_claim_depends_on_no_program():
    """It has correlation 0 to itself by definition, and still is not kept."""
    constant = answered(0.0, 0.0)
    [found] = verdict(constant, [constant]).verdicts
    assert not found.kept
    assert found.detail.startswith("the claim is constant; claims under other programs correlate 0.00 with")


def test_an_answer_that_fails_under_another_program_is_told():
    """With the program that it failed under, and without figures."""
    fails = Answer(Report("failed", "ValueError: no ball", 0.0), None)
    found = verdict(answered(1.0, 2.0), [answered(2.0, 1.0), fails])
    assert (Verdict(ON_PROGRAM, "pong y", False, "under program 1: ValueError: no ball"),) == found.verdicts
    assert () == found.programs


def test_without_a_telling_program_nothing_is_asked_of_the_method():
    """Where no scrambled program changes the effects, the verdict says that it can't tell."""
    [found] = verdict(answered(1.0, 2.0), []).verdicts
    assert found.kept
    assert found.detail == "not applicable: none of 32 scrambled programs runs and has other effects here"
