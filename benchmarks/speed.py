"""`make bench`: oracle and surfaces beside a bare loop of the emulator, scored ram-v1 runs, training, statistics.

The limit is the emulator: `restoreState` and 17 times `act` from one checkpoint, with nothing else done. The oracle's
three extra frames per rollout count as work, since without them rollouts are not exact. Figures of one report are
comparable with each other; between machines, only the ratios are.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.statistics import coverage, seconds_of_a_board
from games.catalog import game
from harness.api import run
from harness.pool import process_context
from harness.surfaces import ADDRESSES_PER_BLOCK
from oracle.effects import AnswerKey, Measured, measure, reference_run
from oracle.emulator import Emulator, silenced_stderr
from oracle.intervention import N_BYTES, RamWrite
from oracle.protocol import protocol
from oracle.readout_training import train_readout
from oracle.rollout import ExactRollouts
from oracle.state import Trace
from oracle.surface import measure_surface

GAME = "seaquest"
N_ROLLOUTS = 2_000
BARE_FRAMES = 17
REPEATS = 3
NETWORK_METHODS = ("vanilla_gradient", "integrated_gradients", "grad_cam", "grad_cam_plus_plus")


def bare_frames_per_second(trace: Trace) -> float:
    """The limit: restore and act, nothing else."""
    machine = Emulator(game(GAME))
    for action in trace.prefix:
        machine.act(action)
    checkpoint, actions = machine.checkpoint(), (*trace.prefix[-2:], *trace.tail)

    def loop() -> int:
        for _ in range(N_ROLLOUTS):
            machine.restore(checkpoint)
            for action in actions:
                machine.act(action)
        return N_ROLLOUTS * BARE_FRAMES

    return _best_rate(loop)


def oracle_frames_per_second() -> float:
    """Exact rollouts of single-byte interventions, snapshots included."""
    rollouts = ExactRollouts(lambda: Emulator(game(GAME)), _trace())

    def loop() -> int:
        before = rollouts.n_frames
        for index in range(N_ROLLOUTS):
            rollouts.run([RamWrite(index % 128, index * 7 % 256)])
        return rollouts.n_frames - before

    with silenced_stderr():
        return _best_rate(loop)


def surface_frames_per_second(answer_key: AnswerKey) -> float:
    """As many bytes of a response surface as a block has: exact rollouts, and every output of ram-v2 read from each."""
    rollouts = ExactRollouts(lambda: Emulator(game(GAME)), answer_key.question.trace)
    found = Measured(rollouts, reference_run(rollouts))
    spread = range(0, N_BYTES, N_BYTES // ADDRESSES_PER_BLOCK)
    return _best_rate(lambda: measure_surface(found, answer_key.question.outputs, spread).n_frames)


def _best_rate(loop: Callable[[], int]) -> float:
    """Frames per second of the fastest of some repeats: the one that was disturbed least."""
    rates = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        n_frames = loop()
        rates.append(n_frames / (time.perf_counter() - started))
    return max(rates)


def _trace() -> Trace:
    return protocol("ram-v1").trace(game(GAME), 0)


def _on_two_cores() -> float:
    with ProcessPoolExecutor(2, mp_context=process_context()) as pool:
        return sum(future.result() for future in [pool.submit(oracle_frames_per_second) for _ in range(2)])


def main() -> None:
    """Print all figures, each with its target."""
    bare, oracle = bare_frames_per_second(_trace()), oracle_frames_per_second()
    say("bare emulator, one core", f"{bare:,.0f} frames/s", "")
    say("oracle, one core", f"{oracle:,.0f} frames/s = {oracle / bare:.2f} of the bare emulator", "at least 0.75")
    answer_key = measure(protocol("ram-v2"), game(GAME), 0)
    surface, bare_there = surface_frames_per_second(answer_key), bare_frames_per_second(answer_key.question.trace)
    figure = f"{surface:,.0f} frames/s = {surface / bare_there:.2f} of the bare emulator at that state"
    say("response surface, one core", figure, "at least 0.75")
    if (os.cpu_count() or 1) > 1:
        two = _on_two_cores()
        say("oracle, two cores", f"{two:,.0f} frames/s = {two / oracle:.2f} of one core", "at least 1.8")
    scored_run("machine", "default", seconds="under 60 s", mib="under 1024 MiB")
    scored_run("network", ",".join(NETWORK_METHODS), seconds="under 120 s", mib="under 1536 MiB")
    started = time.perf_counter()
    train_readout(game(GAME), lambda: Emulator(game(GAME)), seed=0)
    say(f"readout of {GAME}, trained in one process", f"{time.perf_counter() - started:.1f} s", "under 30 s")
    say("statistics of 30 methods, 104 games, 4 states, all pairs", f"{seconds_of_a_board():.1f} s", "under 10 s")
    say("intervals of 2,000 simulated boards of 42 games", f"{coverage():.1%} cover the truth", "93 to 98 %")


def scored_run(subject: str, methods: str, *, seconds: str, mib: str) -> None:
    """Time a run of ram-v1 on the scored games, from an empty store with two workers; the targets are texts."""
    with tempfile.TemporaryDirectory(prefix="veritari-bench-") as folder:
        started = time.perf_counter()
        place = {"out": Path(folder) / "run", "store": Path(folder) / "store"}
        costs = run(games="scored", subject=subject, methods=methods, workers=2, **place).manifest.costs
        took = time.perf_counter() - started
    what = f"ram-v1, {subject}, scored games, empty store, 2 workers"
    say(what, f"{took:.1f} s for {costs.n_frames:,} frames", seconds)
    say(f"peak memory of a worker, {subject}", f"{costs.peak_worker_mib:.0f} MiB", mib)


def say(what: str, figure: str, target: str) -> None:
    """One line of the report."""
    sys.stdout.write(f"{what}: {figure}{f' (target: {target})' if target else ''}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
