"""`make reference`: compute the committed leaderboard anew, and show it in the README."""

import shutil
import tempfile
from pathlib import Path

from harness.api import run

ROOT = Path(__file__).parent.parent
FILES = ("leaderboard.csv", "leaderboard.json", "leaderboard.md", "per_game.csv")
BEGIN, END = "<!-- leaderboard: written by make reference -->\n", "<!-- end of leaderboard -->"


def main() -> None:
    """Run the scored games and replace `results/ram-v1` and the README's table."""
    with tempfile.TemporaryDirectory(prefix="veritari-reference-") as folder:
        finished = run(games="scored", methods="all", out=Path(folder) / "run", store=Path(folder) / "store")
        target = ROOT / "results" / "ram-v1"
        target.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            shutil.copy(finished.path / name, target / name)
    readme = ROOT / "README.md"
    before, _, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    table = (target / "leaderboard.md").read_text(encoding="utf-8")
    readme.write_text(f"{before}{BEGIN}{table}{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
