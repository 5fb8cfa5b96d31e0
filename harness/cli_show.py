"""The command `veritari show`."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli_curves import require_curve_fits, show_curve, write_image
from harness.errors import WrongUsage
from harness.options import Json, RunPath


def show(
    run_path: RunPath,
    *,
    game: Annotated[str, typer.Option(help="The drill-down of one game.")] = "",
    method: Annotated[str, typer.Option(help="The games of one method; with --game, only its claims.")] = "",
    cause: Annotated[str, typer.Option(help="With --game: only this cause, such as 'ram[49]:set'.")] = "",
    state: Annotated[int, typer.Option(min=0, help="With --game: which state.")] = 0,
    image: Annotated[
        Path | None,
        typer.Option(
            help="PNG file: with --game, where each method looks, or the curve; with --cost, F against rollouts."
        ),
    ] = None,
    subject: Annotated[str, typer.Option(help="Only this subject, machine or network.")] = "",
    cost: Annotated[bool, typer.Option("--cost", help="F beside rollouts, gradients and seconds per task.")] = False,
    curve: Annotated[
        str, typer.Option(help="With --game and --cause: response (y by value) or horizon (effect by frame).")
    ] = "",
    output: Annotated[str, typer.Option(help="With --curve: only this output, such as 'ram[54]'.")] = "",
    json: Json = False,
) -> None:
    """Show a run: its leaderboard, the games of a method, what methods cost, one game, or curves of one byte."""
    _require_selection_fits(game, cause=cause, image=image, cost=cost)
    require_curve_fits(curve, output, game=game, cause=cause, method=method, subject=subject)
    if curve:
        show_curve(run_path, curve, (game, state, cause, output), image, json=json)
        return
    from harness import api, game_views, views
    from harness.as_json import to_json
    from harness.leaderboard import joined
    from harness.terminal import print_table, print_text

    shown = api.load_run(run_path)
    selection = game_views.Selection(game, state, method, cause, subject)
    if cost:
        _show_costs(run_path, subject, image, json=json)
        return
    if game and json:
        print_text(to_json(game_views.game_view(shown, selection)))
    elif game:
        game_views.print_game(shown, selection)
    elif method:
        table = views.method_view(shown, method, subject)
        print_text(to_json(table)) if json else print_table(table, title=f"{method}: per game")
    elif json:
        print_text(to_json(joined(board.leaderboard for board in views.boards_of(shown, subject))))
    else:
        views.print_leaderboards(shown, subject)
    if image:
        from harness.picture import draw_game

        write_image(image, draw_game(shown, selection))
        # With --json, stdout is for JSON alone.
        typer.echo(f"picture: {image}", err=json)


def _show_costs(run_path: Path, subject: str, image: Path | None, *, json: bool) -> None:
    from harness import api, views
    from harness.as_json import to_json
    from harness.costs import cost_picture, cost_table
    from harness.leaderboard import joined
    from harness.terminal import print_table, print_text

    shown = api.load_run(run_path)
    tables = [cost_table(shown, board) for board in views.boards_of(shown, subject)]
    if json:
        print_text(to_json(joined(tables)))
    else:
        for table in tables:
            print_table(table, title="F against cost, cheapest first", n_key_columns=2)
    if image:
        write_image(image, cost_picture(tables))
        typer.echo(f"picture: {image}", err=json)


def _require_selection_fits(game: str, *, cause: str, image: Path | None, cost: bool) -> None:
    if cause and not game:
        raise WrongUsage("--cause: expected with --game GAME; add it")
    if image and not (game or cost):
        raise WrongUsage("--image: expected with --game GAME or --cost; add one")
    if cost and game:
        raise WrongUsage("--cost: expected without --game; leave one out")
    if image and image.suffix != ".png":
        raise WrongUsage(f"--image: expected a file that ends in .png, got {image}; rename it")
