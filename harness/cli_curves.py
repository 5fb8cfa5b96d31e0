"""What `veritari show --curve` does."""

from pathlib import Path

import typer

from harness.errors import CannotWrite, WrongUsage

CURVE_NAMES = ("response", "horizon")


def require_curve_fits(curve: str, output: str, *, game: str, cause: str, method: str, subject: str) -> None:
    """Refuse options that say nothing about a curve, and a curve of nothing.

    Raises:
        WrongUsage: naming the option.
    """
    if output and not curve:
        raise WrongUsage("--output: expected with --curve; add it")
    if not curve:
        return
    if curve not in CURVE_NAMES:
        raise WrongUsage(f"--curve: expected {' or '.join(CURVE_NAMES)}, got {curve}; correct it")
    if not (game and cause):
        raise WrongUsage("--curve: expected with --game GAME and --cause 'ram[49]'; add them")
    if subject not in ("", "machine"):
        raise WrongUsage(f"--curve: expected subject machine, got {subject}; curves are of the machine only")
    if method:
        raise WrongUsage("--curve: expected without --method, since it is measured; leave it out")


def show_curve(run_path: Path, curve: str, where: tuple[str, int, str, str], image: Path | None, *, json: bool) -> None:
    """Measure a curve and print it; `where` is game, state, cause and output."""
    wanted_words = " ".join(str(part) for part in where if part != "")
    typer.echo(f"veritari show: measuring {curve} of {wanted_words}", err=True)
    from harness.api import load_run
    from harness.curve_pictures import curve_picture, curve_text, curves_json
    from harness.effect_curves import CURVES, Wanted
    from harness.terminal import Bar, output, print_text

    with Bar() as progress:
        progress.start("measuring curves", 1)
        views = CURVES[curve](load_run(run_path), Wanted(*where))
        progress.advance()
    if json:
        print_text(curves_json(views))
    else:
        for view in views:
            print_text(curve_text(view, output.width))
    if image:
        write_image(image, curve_picture(views))
        # With --json, stdout is for JSON alone.
        typer.echo(f"picture: {image}", err=json)


def write_image(image: Path, content: bytes) -> None:
    """Write a picture where the user wants it.

    Raises:
        CannotWrite: it can't be written there.
    """
    from oracle.store import write_atomically

    try:
        write_atomically(image, content)
    except OSError as error:
        raise CannotWrite(
            f"{image}: expected a file that can be written, got {error.strerror}; choose another --image"
        ) from error
