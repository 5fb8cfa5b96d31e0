"""`make bench`: the oracle against a bare loop of the emulator, and a scored ram-v1 run from an empty store.

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

from games.catalog import game
from harness.api import run
from harness.pool import process_context
from oracle.emulator import Emulator, silenced_stderr
from oracle.intervention import RamWrite
from oracle.protocol import protocol
from oracle.rollout import ExactRollouts
from oracle.state import Trace

GAME = "seaquest"
N_ROLLOUTS = 2_000
BARE_FRAMES = 17
REPEATS = 3


def bare_frames_per_second() -> float:
    """The limit: restore and act, nothing else."""
    machine, trace = Emulator(game(GAME)), _trace()
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
    bare, oracle = bare_frames_per_second(), oracle_frames_per_second()
    say("bare emulator, one core", f"{bare:,.0f} frames/s", "")
    say("oracle, one core", f"{oracle:,.0f} frames/s = {oracle / bare:.2f} of the bare emulator", "at least 0.75")
    if (os.cpu_count() or 1) > 1:
        two = _on_two_cores()
        say("oracle, two cores", f"{two:,.0f} frames/s = {two / oracle:.2f} of one core", "at least 1.8")
    with tempfile.TemporaryDirectory(prefix="veritari-bench-") as folder:
        started = time.perf_counter()
        finished = run(games="scored", out=Path(folder) / "run", store=Path(folder) / "store", workers=2)
        seconds = time.perf_counter() - started
        costs = finished.manifest.costs
    say("ram-v1, scored games, empty store, 2 workers", f"{seconds:.1f} s for {costs.n_frames:,} frames", "under 60 s")
    say("peak memory of a worker", f"{costs.peak_worker_mib:.0f} MiB", "under 1024 MiB")


def say(what: str, figure: str, target: str) -> None:
    """One line of the report."""
    sys.stdout.write(f"{what}: {figure}{f' (target: {target})' if target else ''}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
