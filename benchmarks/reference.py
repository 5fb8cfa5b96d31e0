"""`make reference`: compute the committed leaderboards anew, and show ram-v2's in the README.

`python -m benchmarks.reference --readme` writes the README alone, from the committed files.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from harness.api import run

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
FILES = ("leaderboard.csv", "leaderboard.json", "leaderboard.md", "per_game.csv", "comparisons.csv", "families.csv")
# All methods under ram-v1. Under ram-v2, with 128 bytes, most of those that measure would take hours.
READING = (
    "vanilla_gradient,sampler_gradient,integrated_gradients,gradient_times_input,deep_lift,smoothgrad,"
    "expected_gradients,guided_backprop,grad_cam,grad_cam_plus_plus"
)
REFERENCES = {"ram-v2": f"{READING},occlusion", "ram-v1": "all"}
MENDED = (
    "**What changed against ram-v1.** ram-v1 reproduces a published audit with its weaknesses: one early state per "
    "game, an action cause that is the identity, a third of the occlusions without any effect, a content byte picked "
    "by the effects it is scored on, position as changed pixels anywhere, negative correlations counted as 0. ram-v2 "
    "mends each: four live states per game, all 128 bytes with eight do-values each, outputs that no answer key has "
    "picked, sprites that are located, F as it is."
)
BEGIN, END = "<!-- leaderboard: written by make reference -->\n", "<!-- end of leaderboard -->"


def main() -> None:
    """Run the scored games under both protocols, replace `results/`, and write the README's part."""
    if "--readme" not in sys.argv[1:]:
        for protocol, methods in REFERENCES.items():
            _compute(protocol, methods)
    readme = ROOT / "README.md"
    before, _, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    table = (RESULTS / "ram-v2" / "leaderboard.md").read_text(encoding="utf-8")
    boards = {protocol: _machine_board(protocol) for protocol in REFERENCES}
    changed = what_changed(boards["ram-v1"], boards["ram-v2"])
    readme.write_text(f"{before}{BEGIN}{table}\n{changed}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def _compute(protocol: str, methods: str) -> None:
    with tempfile.TemporaryDirectory(prefix="veritari-reference-") as folder:
        finished = run(
            protocol=protocol, games="scored", methods=methods, out=Path(folder) / "run", store=Path(folder) / "store"
        )
        target = RESULTS / protocol
        target.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            shutil.copy(finished.path / name, target / name)


def _machine_board(protocol: str) -> pd.DataFrame:
    board = pd.read_csv(RESULTS / protocol / "leaderboard.csv")
    return board[board["subject"] == "machine"].set_index("method")


def what_changed(old: pd.DataFrame, new: pd.DataFrame) -> str:
    """What ram-v2 does to the machine's board of ram-v1, in words, with the numbers of both tables."""
    # Controls have no rank.
    both = [method for method in new.index if method in old.index and not np.isnan(new["rank"][method])]
    reading = [method for method in both if new["access"][method] == "read"]
    agreement = new.loc[reading, "F"].corr(old.loc[reading, "F"], method="spearman")
    falls = ", ".join(f"{method} {old['F'][method]:.2f} -> {new['F'][method]:.2f}" for method in both)
    best = new.loc[reading, "F"].idxmax()
    above_hub = [method for method in reading if new["F"][method] > new["F"]["hub"]]
    alike = str(new["not_told_from"][best]) if pd.notna(new["not_told_from"][best]) else ""
    low, high = (new[name]["random"] for name in ("F_low", "F_high"))
    sentences = [
        MENDED,
        f"F of the machine, ram-v1 -> ram-v2: {falls}.",
        f"Chance (`random`) moves from {old['F']['random']:.3f} to {new['F']['random']:.3f} ({low:.3f} to {high:.3f}).",
        f"The order of the methods that read agrees with that of ram-v1 to a rank correlation of {agreement:.2f}.",
        f"Best of them is {best}; {_told(alike)}",
        f"`hub`, which knows which bytes matter, but not for which output, has {new['F']['hub']:.2f}:",
        f"{_listed(above_hub)} above it.",
        f"`oracle_redraw`, the effects of other do-values, has {new['F']['oracle_redraw']:.2f}: what can be reached.",
    ]
    return " ".join(sentences) + "\n"


def _told(alike: str) -> str:
    return f"it can't be told from {alike}." if alike else "it is told apart from all others."


def _listed(methods: list[str]) -> str:
    if not methods:
        return "no method that reads is"
    return f"{' and '.join(methods)} {'is' if len(methods) == 1 else 'are'}"


if __name__ == "__main__":
    main()
