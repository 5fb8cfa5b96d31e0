"""Class activation maps once more: loops over plain numbers, from the equations of the papers."""

import math

Grid = list[list[float]]
Derivatives = tuple[list[Grid], list[Grid], list[Grid]]


def cells(grid: Grid) -> list[tuple[int, int]]:
    """All places of a map, row by row."""
    return [(y, x) for y in range(len(grid)) for x in range(len(grid[0]))]


def weighted_sum(weights: list[float], maps: list[Grid]) -> Grid:
    """ReLU(sum over k of w_k A_k)."""
    heat = [[0.0] * len(maps[0][0]) for _ in maps[0]]
    for y, x in cells(maps[0]):
        total = 0.0
        for weight, each in zip(weights, maps, strict=True):
            total += weight * each[y][x]
        heat[y][x] = max(0.0, total)
    return heat


def grad_cam(maps: list[Grid], gradients: list[Grid]) -> Grid:
    """Selvaraju et al. 2017: w_k = 1/Z sum over i, j of dS/dA_k,ij."""
    weights = []
    for gradient in gradients:
        total = 0.0
        for y, x in cells(gradient):
            total += gradient[y][x]
        weights.append(total / len(cells(gradient)))
    return weighted_sum(weights, maps)


def grad_cam_plus_plus(maps: list[Grid], derivatives: Derivatives) -> Grid:
    """Chattopadhyay et al. 2018, from the first, second and third derivative of Y at every A_k,ij.

    alpha_k,ij = Y'' / (2 Y'' + sum over a, b of A_k,ab Y'''), and w_k = sum over i, j of alpha_k,ij ReLU(Y'), where
    alpha is 0 if its denominator is.
    """
    weights = []
    for each, first, second, third in zip(maps, *derivatives, strict=True):
        weight = 0.0
        for y, x in cells(each):
            denominator = 2 * second[y][x]
            for a, b in cells(each):
                denominator += each[a][b] * third[y][x]
            alpha = second[y][x] / denominator if denominator != 0 else 0.0
            weight += alpha * max(0.0, first[y][x])
        weights.append(weight)
    return weighted_sum(weights, maps)


def exponential_derivatives(score: float, gradients: list[Grid]) -> Derivatives:
    """The first three derivatives of Y = exp(S) where S is linear: exp(S) g, exp(S) g^2, exp(S) g^3."""
    first, second, third = (
        [[[math.exp(score) * g**power for g in row] for row in gradient] for gradient in gradients]
        for power in (1, 2, 3)
    )
    return first, second, third


def upsampled(grid: Grid, height: int, width: int) -> Grid:
    """Bilinear, places are the centres of pixels, and beyond the outer centres the value stays."""
    result = [[0.0] * width for _ in range(height)]
    for y in range(height):
        above, below, down = neighbours(y, height, len(grid))
        for x in range(width):
            left, right, along = neighbours(x, width, len(grid[0]))
            upper = (1 - along) * grid[above][left] + along * grid[above][right]
            lower = (1 - along) * grid[below][left] + along * grid[below][right]
            result[y][x] = (1 - down) * upper + down * lower
    return result


def neighbours(index: int, n_new: int, n_old: int) -> tuple[int, int, float]:
    """The old places on both sides of a new one, and how far it is from the first to the second."""
    place = min(max((index + 0.5) * n_old / n_new - 0.5, 0.0), n_old - 1.0)
    first = int(place)
    return first, min(first + 1, n_old - 1), place - first


def patch_maps(tokens: list[list[float]], rows: int, columns: int) -> list[Grid]:
    """Tokens (N, D) as D maps, row by row; what is more than rows x columns stands in front and is left out."""
    extra = len(tokens) - rows * columns
    return [
        [[tokens[extra + row * columns + column][feature] for column in range(columns)] for row in range(rows)]
        for feature in range(len(tokens[0]))
    ]
