"""Where on the screen a claim lies: through the footprints of causes, or as a map of the network's input."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

from methods.network_cam import LEAST_SIDE
from oracle.emulator import Machine, silenced_stderr
from oracle.intervention import Cause
from oracle.network import N_FRAMES
from oracle.network_effects import changed_pixels
from oracle.rollout import ExactRollouts
from oracle.task import Question

Footprints = Bool[np.ndarray, "cause row column"]
Weights = Float[np.ndarray, " cause"]
Intensity = Float[np.ndarray, "row column"]


def direct_footprints(fresh_machine: Callable[[], Machine], question: Question) -> Footprints:
    """The pixels that each cause changes in any of the first two frames: before the game's own logic spreads it."""
    with silenced_stderr():
        rollouts = ExactRollouts(fresh_machine, question.trace)
        reference = rollouts.film([], N_FRAMES)

        def changed(cause: Cause) -> Bool[np.ndarray, "row column"]:
            films = [rollouts.film([intervention], N_FRAMES) for intervention in cause.interventions]
            return np.asarray(np.logical_or.reduce([changed_pixels(film, reference) for film in films]))

        masks = [changed(cause) for cause in question.causes]
        return np.array(masks, dtype=np.bool_).reshape(len(masks), *reference.last.screen.shape)


def strengths(weights: Weights, footprints: Footprints) -> Weights:
    """How strongly each cause is painted, as a share of the strongest: |weight| / sqrt(pixels of its footprint).

    By the weight alone, a background colour would flood the picture; by weight / pixels it could not be seen, and a
    single pixel would outshine every sprite. A cause without a footprint has 0, and so has NaN.

    >>> strengths(np.array([6.0, -4.0]), np.array([[[1, 1, 1, 1]], [[0, 1, 0, 0]]], dtype=bool))
    array([0.75, 1.  ])
    """
    n_pixels = footprints.sum(axis=(1, 2))
    sizes = np.where(n_pixels > 0, np.abs(np.nan_to_num(weights)), 0.0)
    return _shares(sizes / np.sqrt(np.maximum(n_pixels, 1)))


def painted(strength: Weights, footprints: Footprints) -> Intensity:
    """Each pixel as strong as the strongest cause that changes it; 0 where none does.

    The largest and not the sum: two interventions on one byte are one thing on the screen.
    """
    return np.asarray((strength[:, np.newaxis, np.newaxis] * footprints).max(axis=0, initial=0.0))


def unseen_share(weights: Weights, footprints: Footprints) -> float:
    """The share of all |weight| that lies in causes without a footprint, which no picture can show; 0 without any.

    >>> unseen_share(np.array([3.0, -1.0]), np.array([[[True]], [[False]]]))
    0.25
    """
    sizes = np.abs(np.nan_to_num(weights))
    total = float(sizes.sum())
    return float(sizes[~footprints.any(axis=(1, 2))].sum()) / total if total else 0.0


def is_picture(pixels: np.ndarray) -> bool:
    """True for a map (channel, row, column) or (time, channel, row, column) that can be laid on a screen."""
    return pixels.ndim in (3, 4) and min(pixels.shape[-2:]) >= LEAST_SIDE


def on_screen(pixels: np.ndarray, shape: tuple[int, int]) -> Intensity:
    """A map's mean size over all axes but the last two, as shares of the largest, on a screen of this shape.

    By nearest neighbour: what a network sees is a picture of the whole screen, only smaller.
    """
    sizes = np.abs(np.nan_to_num(pixels.astype(np.float64))).mean(axis=tuple(range(pixels.ndim - 2)))
    rows, columns = (_nearest(n_source, n_target) for n_source, n_target in zip(sizes.shape, shape, strict=True))
    return np.asarray(_shares(sizes)[np.ix_(rows, columns)])


def _nearest(n_source: int, n_target: int) -> np.ndarray:
    """For each of `n_target` cells, which of `n_source` its centre lies in."""
    return np.asarray((2 * np.arange(n_target) + 1) * n_source // (2 * n_target))


def _shares(sizes: np.ndarray) -> np.ndarray:
    largest = sizes.max(initial=0.0)
    return np.asarray(sizes / largest if largest else sizes)
