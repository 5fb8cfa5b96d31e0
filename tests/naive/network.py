"""Resizing by area, pixel by pixel."""

import math

import numpy as np


def area_resized(frames, side):
    """Each of side x side cells is the mean of all pixels that it touches, also of those it touches in part."""
    n_frames, n_rows, n_columns = frames.shape
    resized = np.zeros((n_frames, side, side))
    for row in range(side):
        top, bottom = math.floor(row * n_rows / side), math.ceil((row + 1) * n_rows / side)
        for column in range(side):
            left, right = math.floor(column * n_columns / side), math.ceil((column + 1) * n_columns / side)
            resized[:, row, column] = frames[:, top:bottom, left:right].mean(axis=(1, 2))
    return resized
