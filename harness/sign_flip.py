"""The sign-flip test of paired differences: could the two methods be as good as each other on such games?"""

import numpy as np
from jaxtyping import Float, Int8

N_FLIPS = 100_000
MAX_GAMES_FOR_ALL_FLIPS = 16
MIN_GAMES_FOR_P = 6
# Sums whose sizes differ by no more than this share of all sizes together differ by rounding.
TIE = 1e-12
# Flips multiplied at once, which bounds the memory: those of 435 pairs are then 14 MB.
BLOCK = 4096

# Differences of game values, first method minus second; NaN where either has none.
Differences = Float[np.ndarray, "pair regime game"]
Signs = Int8[np.ndarray, "flip game"]


def drawn_signs(n_games: int, *, seed: int, n_flips: int = N_FLIPS) -> Signs:
    """Random signs, 1 or -1; the same seed gives all pairs the same signs of a game."""
    bits = np.random.default_rng(seed).integers(2, size=(n_flips, n_games), dtype=np.int8)
    return np.asarray(1 - 2 * bits, dtype=np.int8)


def sign_flip_p(differences: Differences, signs: Signs) -> Float[np.ndarray, " pair"]:
    """Two-sided p, in ]0, 1], of each pair's mean difference T (its `board_value`); NaN under six games.

    The null: a game's differences are as likely to have the opposite sign, in all its regimes together (Fisher 1935,
    The Design of Experiments, section 21). T* is T with the signs of games flipped. Up to 16 games p is the share of
    all 2^n flips with |T*| >= |T|; above, (1 + #{|T*| >= |T|}) / (1 + B) over the B drawn flips, which is never 0.
    Ties count as at least as large whatever rounding does to them. A game whose difference is 0 stays in.
    """
    compared = (~np.isnan(differences)).any(axis=1)
    shares, n_games = _shares(differences), compared.sum(axis=1)
    p = np.full(len(differences), np.nan)
    for n_small in range(MIN_GAMES_FOR_P, MAX_GAMES_FOR_ALL_FLIPS + 1):
        chosen = n_games == n_small
        if chosen.any():
            own = shares[chosen][compared[chosen]].reshape(-1, n_small)
            p[chosen] = _n_as_large(own, _all_flips(n_small)) / 2 ** (n_small - 1)
    many = n_games > MAX_GAMES_FOR_ALL_FLIPS
    if many.any():
        p[many] = (1 + _n_as_large(shares[many], signs)) / (1 + len(signs))
    return p


def _shares(differences: Differences) -> Float[np.ndarray, "pair game"]:
    """What each game adds to the sum of the regimes' means, which is T but for the number of regimes.

    That is the same for every flip, and so counts for nothing.
    """
    present = ~np.isnan(differences)
    count = present.sum(axis=2, keepdims=True)
    by_regime = np.where(present, differences, 0.0) / np.maximum(count, 1)
    return np.asarray(by_regime.sum(axis=1))


def _all_flips(n_games: int) -> Signs:
    """All signs with the last game's kept: the opposite ones have the same |T*|."""
    bits = (np.arange(2 ** (n_games - 1))[:, None] >> np.arange(n_games)) & 1
    return (1 - 2 * bits).astype(np.int8)


def _n_as_large(shares: Float[np.ndarray, "pair game"], signs: Signs) -> Float[np.ndarray, " pair"]:
    """Of how many flips the sum is at least as large as the sum without."""
    limit = np.abs(shares.sum(axis=1)) - TIE * np.abs(shares).sum(axis=1)
    count = np.zeros(len(shares))
    for start in range(0, len(signs), BLOCK):
        sums = np.abs(shares @ signs[start : start + BLOCK].T.astype(np.float64))
        count += (sums >= limit[:, None]).sum(axis=1)
    return count
