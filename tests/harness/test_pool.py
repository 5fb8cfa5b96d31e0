"""Worker processes: each unit has a time limit, and none takes another one down."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.pool import Job, Limits, process_context, run_job, run_jobs
from tests.harness import jobs

ROOT = Path(__file__).parents[2]
LIMITS = Limits(workers=2, timeout_seconds=30.0, memory_gib=4.0)


def reports_of(wanted, limits=LIMITS):
    """Status and text of each job, in the order of the jobs; every job must have been reported once."""
    reports = []
    run_jobs(wanted, limits, lambda job, report: reports.append((job, report)))
    assert len(wanted) == len(reports)
    by_job = dict(reports)
    return [(by_job[job].status, by_job[job].text) for job in wanted]


def said(*texts):
    """Jobs that work."""
    return [Job(jobs.says, (text,)) for text in texts]


def test_no_job_is_no_work():
    """Without jobs nothing is reported."""
    assert [] == reports_of([])


def test_every_job_is_reported_once_and_with_its_own_answer():
    """Whatever the order in which 20 jobs end, each is reported once, with what it said."""
    texts = [f"job {index}" for index in range(20)]
    assert [("ok", text) for text in texts] == reports_of(said(*texts))


def test_reports_come_as_jobs_end():
    """A quick job is reported before a slow one that was started first."""
    order = []
    slow, quick = Job(jobs.takes, (1.5,)), Job(jobs.says, ("quick",))
    run_jobs([slow, quick], LIMITS, lambda job, _: order.append(job))
    assert [quick, slow] == order


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (Job(jobs.exits, (3,)), "the process ended (exit code 3)"),
        (Job(jobs.kills_itself, ()), "the process ended (signal 9)"),
    ],
)
def test_a_job_that_dies_takes_only_itself(job, reason):
    """The process of one job ends; it has failed with the exit code or signal, all others are fine."""
    first, *others = reports_of([job, *said("a", "b", "c", "d")])
    assert ("failed", reason) == first
    assert [("ok", text) for text in "abcd"] == others


def test_a_job_whose_answer_can_not_be_heard_takes_only_itself():
    """A job closes the pipes of its worker; it alone has failed."""
    first, *others = reports_of([Job(jobs.closes_pipes, ()), *said("a", "b")])
    assert "failed" == first[0]
    assert [("ok", "a"), ("ok", "b")] == others


def test_a_job_beyond_its_time_takes_only_itself():
    """A job that takes longer than the limit has timed out with that limit as its reason; the others are fine."""
    limits = Limits(workers=2, timeout_seconds=1.0, memory_gib=4.0)
    first, *others = reports_of([Job(jobs.takes, (60.0,)), *said("a", "b")], limits)
    assert ("timeout", "no answer within 1 s") == first
    assert [("ok", "a"), ("ok", "b")] == others


def test_the_time_limit_counts_from_the_start_of_a_job():
    """Three jobs of 0.6 s on one worker stay within a limit of 1.5 s each: waiting for a worker costs nothing."""
    limits = Limits(workers=1, timeout_seconds=1.5, memory_gib=4.0)
    assert ["ok"] * 3 == [
        status for status, _ in reports_of([Job(jobs.takes, (each,)) for each in (0.6, 0.61, 0.62)], limits)
    ]


def test_a_silent_end_is_noticed_long_before_the_timeout(tmp_path):
    """A process that leaves with exit code 0 is missed at once, not after the timeout of 60 s."""
    pid_file = tmp_path / "pid"
    started = time.monotonic()
    limits = Limits(workers=1, timeout_seconds=60.0, memory_gib=4.0)
    report = run_job(Job(jobs.exits_after_introduction, (str(pid_file),), pid_file=pid_file), limits)
    assert ("failed", "the process ended (exit code 0)") == (report.status, report.text)
    assert 30.0 > time.monotonic() - started


def test_a_worker_serves_one_job_after_the_other():
    """With one worker all jobs run in one process, which is not this one."""
    limits = Limits(workers=1, timeout_seconds=30.0, memory_gib=4.0)
    texts = {text for _, text in reports_of([Job(jobs.takes, (seconds,)) for seconds in (0.0, 0.01, 0.02)], limits)}
    assert 1 == len(texts)


def test_two_workers_work_at_once():
    """With two workers, two jobs that overlap run in two processes."""
    assert 2 == len({text for _, text in reports_of([Job(jobs.takes, (seconds,)) for seconds in (1.0, 1.01)])})


def test_processes_are_not_forked_from_this_one():
    """Workers are started by a fork server or spawned: a plain fork after torch was imported can hang."""
    assert process_context().get_start_method() in {"forkserver", "spawn"}


def test_how_a_worker_is_made(monkeypatch):
    """A worker has one torch thread, nothing that this process changed after its imports, and its limits."""
    monkeypatch.setattr(jobs, "mark", "of the parent")
    limits = Limits(workers=1, timeout_seconds=30.0, memory_gib=3.0)
    expected = f"1 threads, mark '', memory {3 * 2**30}, core 0"
    assert expected == run_job(Job(jobs.describes_its_process, ()), limits).text


SCRIPT = """
from harness.pool import Job, Limits, run_jobs
from tests.harness import jobs

wanted = [Job(jobs.shouts, ()), Job(jobs.exits, (3,)), *(Job(jobs.says, (str(index),)) for index in range(2))]
for attempt in range(2):
    run_jobs(wanted, Limits(2, 30.0, 4.0), lambda job, report: print(report.status))
"""


def test_workers_are_quiet():
    """Nothing that a job writes, nor the end of its process, reaches the user's terminal."""
    finished = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=120, cwd=ROOT
    )
    assert ["failed", "failed", "ok", "ok", "ok", "ok", "ok", "ok"] == sorted(finished.stdout.splitlines())
    assert "" == finished.stderr


LATE = """
import sys
import time
from pathlib import Path
from harness.pool import Job, Limits, run_jobs
from tests.harness import jobs

if __name__ == "__main__":
    wanted = [Job(jobs.will_not_end, ()), *(Job(jobs.says, (text,)) for text in "abc")]
    run_jobs(wanted, Limits(4, 30.0, 4.0), lambda job, report: print(report.text))
else:
    # A worker imports its parent's script first. All but one are late, as on a busy machine.
    try:
        Path(__file__).with_name("first").touch(exist_ok=False)
    except FileExistsError:
        time.sleep(1.5)
"""


def test_a_late_worker_is_quiet(tmp_path):
    """A worker that is still starting while the others are stopped leaves no traceback on the terminal."""
    script = tmp_path / "script.py"
    script.write_text(LATE, encoding="utf-8")
    finished = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert ["deaf", "a", "b", "c"] == finished.stdout.splitlines()
    assert "" == finished.stderr
