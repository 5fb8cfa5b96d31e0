"""The statistics of a board: how long they take, and how often their intervals cover a truth that is known."""

import time

import numpy as np

from harness.comparison import compare, family_of_pairs
from harness.sign_flip import drawn_signs
from harness.statistics import drawn_games, game_values, intervals, spread_over_seeds, spread_over_states

N_METHODS, N_FLOORS, N_GAMES, N_STATES, N_SEEDS = 30, 2, 104, 4, 3
OUTPUTS = (4, 2)
N_BOARDS, N_BOARD_GAMES = 2_000, 42


def seconds_of_a_board(*, seed: int = 0) -> float:
    """Means, intervals and spreads of 30 methods and two floors, and all their pairs: by regime, and for F."""
    generator = np.random.default_rng(seed)
    scores = [generator.random((N_METHODS + N_FLOORS, N_GAMES, N_STATES, n, N_SEEDS)) for n in OUTPUTS]
    started = time.perf_counter()
    values = np.stack([game_values(scored) for scored in scores], axis=1)
    spread_over_states(scores)
    spread_over_seeds(scores)
    draws, signs = drawn_games(N_GAMES, seed=seed), drawn_signs(N_GAMES, seed=seed)
    pairs = family_of_pairs(range(N_METHODS), range(N_METHODS, N_METHODS + N_FLOORS))
    for regimes in (values, values[:, :1], values[:, 1:]):
        intervals(regimes, draws)
        compare(regimes, pairs, draws, signs)
    return time.perf_counter() - started


def coverage(*, n_boards: int = N_BOARDS, n_games: int = N_BOARD_GAMES, seed: int = 0) -> float:
    """The share of simulated boards whose 95 % interval of F holds the mean of all games there could be.

    Scores lean towards 0, as those of weak methods do, are correlated between the regimes of a game, and a fifth of the
    games have no position.
    """
    generator = np.random.default_rng(seed)
    # Beta(0.8, 1.6) has the mean 1/3; a regime is its game's value in half of the cases, else one of its own.
    game, own = generator.beta(0.8, 1.6, (n_boards, 1, n_games)), generator.beta(0.8, 1.6, (n_boards, 2, n_games))
    values = np.where(generator.random(own.shape) < 0.5, game, own)
    values[:, 1][generator.random((n_boards, n_games)) < 0.2] = np.nan
    found = intervals(values, drawn_games(n_games, seed=seed))
    return float(np.mean([each.low <= 1 / 3 <= each.high for each in found]))
