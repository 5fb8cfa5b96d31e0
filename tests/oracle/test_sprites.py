"""Sprites and their displacement against loops over pixels and shifts, on paper, and found in real games."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from games.catalog import game
from oracle import sprites as sprites_module
from oracle.emulator import Emulator, silenced_stderr
from oracle.intervention import RamWrite
from oracle.rollout import ExactRollouts
from oracle.sprites import (
    Box,
    Sprite,
    _foreground,
    best_shift,
    bounding_box,
    find_sprites,
    template_at_horizon,
    translation,
)
from oracle.state import Trace
from oracle.template import Template, TranslatingByte, displacement
from tests.naive import sprites as naive
from tests.oracle.test_footprint import VALUES, PaintingMachine

many_examples = settings(deadline=None, derandomize=True, max_examples=60)
BACKGROUND = 4
# Ten pixels in four colours, no two rows or columns alike; 0 is transparent.
PICTURE = np.array([[9, 9, 8, 0], [9, 8, 5, 0], [7, 9, 8, 8]], dtype=np.uint8)


def drawn(row, column, picture=PICTURE, shape=(40, 50)):
    """A screen with a picture at a place; colour 0 is transparent."""
    screen = np.full(shape, BACKGROUND, dtype=np.uint8)
    for (down, right), colour in np.ndenumerate(picture):
        if colour:
            screen[row + down, column + right] = colour
    return screen


def template_of(row, column, movers=()):
    """The template of `PICTURE` at a place."""
    pixels = ((row + down, column + right, int(colour)) for (down, right), colour in np.ndenumerate(PICTURE) if colour)
    return Template(tuple(pixels), movers)


def screens_from(seed, shape, n_colours, n=2):
    """Random screens in few colours, so that many shifts explain equally much."""
    return np.random.default_rng(seed).integers(0, n_colours, (n, *shape), dtype=np.uint8)


SHAPES = st.tuples(st.integers(3, 12), st.integers(3, 12))
SEEDS = st.integers(0, 2**32 - 1)


# --- the best shift ---


@many_examples
@given(SEEDS, SHAPES, st.integers(2, 3), st.integers(1, 4))
def test_best_shift_equals_the_naive_one(seed, shape, n_colours, limit):
    """Shift and share are those of the loop over pixels and shifts, ties included."""
    reference, new = screens_from(seed, shape, n_colours)
    changed = reference != new
    if changed.any():
        assert naive.best_shift(reference, new, changed, limit) == best_shift(reference, new, changed, limit=limit)


@many_examples
@given(st.integers(16, 21), st.integers(16, 30), st.integers(-16, 16), st.integers(-16, 16))
def test_a_sprite_drawn_elsewhere_is_explained_by_that_shift(row, column, dx, dy):
    """A picture on an empty background that is drawn elsewhere has moved by exactly that, and all is explained."""
    reference, new = drawn(row, column), drawn(row + dy, column + dx)
    if (dx, dy) != (0, 0):
        assert ((dx, dy), 1.0) == best_shift(reference, new, reference != new, limit=16)


@many_examples
@given(SEEDS, SHAPES, st.sampled_from([(slice(None), slice(None, None, -1)), (slice(None, None, -1), slice(None))]))
def test_mirrored_screens_give_mirrored_shifts(seed, shape, mirror):
    """Mirrored screens explain as much, by the mirrored shift where only one is best."""
    reference, new = screens_from(seed, shape, 6)
    changed = reference != new
    (dx, dy), share = best_shift(reference, new, changed, limit=3)
    mirrored = best_shift(reference[mirror], new[mirror], changed[mirror], limit=3)
    assert share == mirrored[1]
    if naive.n_best_shifts(reference, new, changed, 3) == 1:
        left_right = mirror[0] == slice(None)
        assert ((-dx, dy) if left_right else (dx, -dy)) == mirrored[0]


@pytest.mark.parametrize(
    ("sources", "shift"),
    [
        # The pixel (5, 5) takes its colour from each of these places: its shift is (5 - column, 5 - row).
        ([(5, 3), (4, 4), (5, 6)], (-1, 0)),  # the shortest
        ([(4, 5), (6, 5), (5, 4)], (0, -1)),  # of equally long ones upwards first
        ([(5, 4), (5, 6), (4, 5)], (-1, 0)),  # then level, to the left
        ([(4, 5), (5, 4)], (1, 0)),  # level before downwards
        ([(6, 6), (6, 4), (4, 6)], (-1, -1)),  # upwards, then to the left
        ([(5, 3), (3, 5)], (2, 0)),
    ],
)
def test_ties(sources, shift):
    """Of equally good shifts the smallest |dx| + |dy| is taken, then the smallest dy, then the smallest dx."""
    reference, new = np.zeros((2, 11, 11), dtype=np.uint8)
    for place in sources:
        reference[place] = 9
    new[5, 5] = 9
    changed = np.zeros((11, 11), dtype=np.bool_)
    changed[5, 5] = True
    assert (shift, 1.0) == best_shift(reference, new, changed, limit=3)


def test_off_the_screen_nothing_is_explained():
    """A changed pixel whose source would lie off the screen counts as not explained."""
    reference, new = drawn(20, 1), drawn(20, 9)
    reference[:, 0] = new[:, 0] = 200
    # A whole row becomes background: from the left edge there is no source for columns 0 to 7.
    new[30] = reference[30] = 77
    new[30, :2] = BACKGROUND
    expected = naive.best_shift(reference, new, reference != new, 16)
    assert expected == best_shift(reference, new, reference != new, limit=16)
    # Everything changed, and only the last 3 of 10 columns have their source 7 to the left on the screen.
    ramp = np.arange(10, dtype=np.uint8)[None].repeat(2, axis=0)
    shifted = ((ramp.astype(int) - 7) % 256).astype(np.uint8)
    assert ((7, 0), 0.3) == best_shift(ramp, shifted, ramp != shifted, limit=8)


def test_nothing_changed_has_no_share():
    """Where nothing changed there is no share, rather than a perfect or an empty one."""
    screen = drawn(5, 5)
    shift, share = best_shift(screen, screen, np.zeros_like(screen, dtype=np.bool_), limit=2)
    assert ((0, 0), True) == (shift, np.isnan(share))


# --- translation ---


def test_the_slope_is_the_mean_of_both_shifts_over_8():
    """The slope is (shift of +8 - shift of -8) / 16 per axis."""
    reference = drawn(18, 20)
    assert (1.0, 0.0) == translation(reference, drawn(18, 28), drawn(18, 12))
    # Columns: the mean of 5 and 4, over 8. Rows: the mean of -2 and -2, over 8.
    assert (0.5625, -0.25) == translation(reference, drawn(16, 25), drawn(20, 16))


@pytest.mark.parametrize(
    ("plus", "minus"),
    [
        ((18, 20), (18, 12)),  # one poke does nothing
        ((18, 28), (18, 28)),  # both move it the same way
        ((18, 28), (18, 14)),  # 8 and -6 differ by 2
        ((20, 28), (18, 12)),  # 2 and 0 rows
        ((18, 37), (18, 12)),  # 17 columns
    ],
)
def test_what_is_no_translation(plus, minus):
    """A byte translates nothing if one poke is without effect, the shifts are not opposite, or one is too long."""
    reference = drawn(18, 20)
    assert translation(reference, drawn(*plus), drawn(*minus)) is None


@pytest.mark.parametrize(("n_pixels", "slope"), [(3, None), (4, (0.25, 0.0)), (750, (0.25, 0.0)), (751, None)])
def test_8_to_1500_pixels_change(n_pixels, slope):
    """A poke that changes fewer than 8 or more than 1500 pixels moves no sprite."""
    # A column of pixels that moves 2 columns: each changes 2 pixels, where it was and where it is.
    screens = np.zeros((3, 751, 30), dtype=np.uint8)
    for screen, column in zip(screens, (10, 12, 8), strict=True):
        screen[:n_pixels, column] = np.random.default_rng(1).integers(1, 256, n_pixels)
    assert slope == translation(*screens)


@pytest.mark.parametrize(("n_painted", "slope"), [(2, (0.5, 0.0)), (3, None)])
def test_90_percent_are_explained(n_painted, slope):
    """A change is a move if at least 90 % of its pixels are explained by the one shift."""
    # 20 pixels change by the move; 2 of 22 are 9 % that it does not explain, 3 of 23 are 13 %.
    reference, plus, minus = drawn(18, 20), drawn(18, 24), drawn(18, 16)
    assert 20 == (reference != plus).sum()
    for index in range(n_painted):
        plus[2, 10 * index] = 100 + index
    assert slope == translation(reference, plus, minus)


@many_examples
@given(SEEDS, st.tuples(*[st.integers(-3, 3)] * 4), st.integers(0, 4))
def test_translation_equals_the_naive_one(seed, steps, n_painted):
    """The slope is that of loops over pixels and shifts, or none for both."""
    right, down, left, up = steps
    generator = np.random.default_rng(seed)
    picture = generator.integers(0, 4, (4, 5), dtype=np.uint8)
    places = ((20, 20), (20 + down, 20 + right), (20 + up, 20 + left))
    screens = [drawn(row, column, picture) for row, column in places]
    for _ in range(n_painted):
        screens[int(generator.integers(3))][tuple(generator.integers(0, 40, 2))] = generator.integers(256)
    assert naive.translation(*screens) == translation(*screens)


# --- displacement ---


@many_examples
@given(st.integers(0, 37), st.integers(0, 46), st.integers(-24, 24), st.integers(-24, 24))
def test_a_sprite_drawn_elsewhere_is_displaced_by_exactly_that(row, column, dx, dy):
    """y is |dx| + |dy| of the place where the sprite is drawn, at most 24."""
    if 0 <= row + dy <= 37 and 0 <= column + dx <= 46:
        screen = drawn(row + dy, column + dx)
        expected = (float(min(24, abs(dx) + abs(dy))), False)
        assert expected == tuple(each.item() for each in displacement(template_of(row, column), screen[None]))


@many_examples
@given(SEEDS, st.integers(2, 4), st.integers(1, 12))
def test_displacement_equals_the_naive_one(seed, n_colours, n_pixels):
    """On noisy screens, where many shifts match as well, y and `lost` are those of the loop, in a batch with copies."""
    generator = np.random.default_rng(seed)
    reference = generator.integers(0, n_colours, (12, 15), dtype=np.uint8)
    places = sorted(zip(*(generator.integers(0, n, n_pixels).tolist() for n in reference.shape), strict=True))
    template = Template(tuple((row, column, int(reference[row, column])) for row, column in dict.fromkeys(places)), ())
    screens = [reference, *(np.roll(reference, generator.integers(-3, 4, 2), (0, 1)) for _ in range(3))]
    noisy = [np.where(generator.random(each.shape) < 0.2, 1, each).astype(np.uint8) for each in screens]
    batch = np.stack([*screens, *noisy, *noisy[::-1]])
    expected = [naive.displacement(template, screen) for screen in batch]
    assert expected == list(zip(*(each.tolist() for each in displacement(template, batch)), strict=True))


@pytest.mark.parametrize(("n_hidden", "expected"), [(2, (3.0, False)), (3, (24.0, True))])
def test_lost(n_hidden, expected):
    """A sprite of which fewer than 80 % are found is lost, and counts as 24 pixels away."""
    template, screen = template_of(20, 20), drawn(20, 23)
    assert 10 == len(template.pixels)
    for row, column, _ in template.pixels[:n_hidden]:
        screen[row, column + 3] = 99
    assert expected == tuple(each.item() for each in displacement(template, screen[None]))


def test_a_sprite_that_leaves_the_screen():
    """Pixels off the screen match nothing: a sprite that is gone by two of ten pixels is found, by more it is lost."""
    template = Template(tuple((row, 2 * row % 5, 10 + row) for row in range(10)), ())
    screen = np.zeros((10, 9), dtype=np.uint8)
    for row, column, colour in template.pixels[2:]:
        screen[row - 2, column] = colour
    assert (2.0, False) == tuple(each.item() for each in displacement(template, screen[None]))
    screen[0] = 0
    assert (24.0, True) == tuple(each.item() for each in displacement(template, screen[None]))


def test_displacement_takes_the_nearest_of_equals():
    """Of two copies of the sprite the nearer one counts."""
    screen = np.maximum(drawn(20, 27), drawn(14, 20))
    assert (6.0, False) == tuple(each.item() for each in displacement(template_of(20, 20), screen[None]))


# --- boxes, templates ---


def test_boxes_on_paper():
    """Boxes are half open; the overlap is the shared area as a share of the smaller box."""
    mask = np.zeros((9, 9), dtype=np.bool_)
    mask[2, 5] = mask[6, 3] = True
    assert Box(2, 3, 7, 6) == bounding_box(mask)
    assert 15 == Box(2, 3, 7, 6).area
    # Rows 5 and 6 of columns 4 and 5 are shared, of 15 and 12 pixels.
    assert 4 / 12 == Box(2, 3, 7, 6).overlap(Box(5, 4, 9, 7))
    assert 0.0 == Box(2, 3, 7, 6).overlap(Box(7, 6, 9, 9))


def test_a_template_is_json():
    """A template goes through JSON unchanged."""
    template = template_of(3, 4, (TranslatingByte(49, 1.0, -0.0625, 130),))
    adapter = TypeAdapter(Template)
    assert template == adapter.validate_json(adapter.dump_json(template))


@many_examples
@given(SEEDS, SHAPES, st.integers(2, 5))
def test_the_foreground_equals_the_naive_one(seed, shape, n_colours):
    """A sprite's pixels are those of its box in another colour than the commonest round it, also at the edge."""
    generator = np.random.default_rng(seed)
    screen = generator.integers(0, n_colours, shape, dtype=np.uint8)
    top, left = (int(generator.integers(n - 1)) for n in shape)
    bottom, right = int(generator.integers(top + 1, shape[0])), int(generator.integers(left + 1, shape[1]))
    assert naive.foreground(screen, top, left, bottom, right) == list(
        _foreground(screen, Box(top, left, bottom, right))
    )


# --- sprites of a machine ---

FLASHING, FROZEN_AFTER = 30, 5
# Row and column of each picture, and how many (columns, rows) a byte moves it per unit.
MOVING = (
    (20, 40, {9: (0.25, 0.0), 10: (1.0, 0.0), 12: (0.5, 0.0)}),
    (40, 60, {35: (0.0, -0.5)}),
)


class MovingMachine(PaintingMachine):
    """A console whose bytes move pictures on an empty screen, and one that repaints a corner instead.

    After frame `FROZEN_AFTER` byte 35 moves nothing any more.
    """

    def __init__(self):
        self._n_frames = 0
        super().__init__({})

    def act(self, action):
        self._n_frames += 1
        self._screen = np.full((60, 90), BACKGROUND, dtype=np.uint8)
        for row, column, movers in MOVING:
            steps = [
                (self._moved(address) * right, self._moved(address) * down) for address, (right, down) in movers.items()
            ]
            right, down = (int(sum(step)) for step in zip(*steps, strict=True))
            self._screen = np.where(
                (there := drawn(row + down, column + right, shape=self._screen.shape)) != BACKGROUND,
                there,
                self._screen,
            )
        if self._moved(FLASHING):
            self._screen[:4, :4] += np.arange(16, dtype=np.uint8).reshape(4, 4)
        return 0.0

    def _moved(self, address):
        """How far a byte is from its first value, the short way round."""
        frozen = address == 35 and self._n_frames > FROZEN_AFTER
        return 0 if frozen else (self._ram[address] - VALUES[address] + 128) % 256 - 128

    def checkpoint(self):
        return tuple(self._ram), self._n_frames

    def restore(self, checkpoint):
        self._ram, self._n_frames = list(checkpoint[0]), checkpoint[1]


def moving_rollouts(n_tail, frame=2):
    """Rollouts of that machine from an analysis frame; it has played one more by then, at boot."""
    return ExactRollouts(MovingMachine, Trace((0,) * (frame + n_tail), frame))


def mover(address, slope_x, slope_y):
    """A byte of that machine."""
    return TranslatingByte(address, slope_x, slope_y, VALUES[address])


# Pokes move the first picture 8 columns to each side, the second 4 rows: 30 pixels change each.
FIRST = Sprite((mover(10, 1.0, 0.0), mover(12, 0.5, 0.0), mover(9, 0.25, 0.0)), 30, Box(20, 32, 23, 52))
SECOND = Sprite((mover(35, 0.0, -0.5),), 30, Box(36, 60, 47, 64))


def test_sprites_on_paper():
    """Bytes with overlapping boxes move one sprite, the one that changes most leads; a byte that repaints moves none.

    Byte 35 holds 248, so its poke wraps.
    """
    assert 248 == VALUES[35]
    # 10 and 12 change equally many pixels, so the lower address leads; under 9 the picture overlaps itself.
    assert (FIRST, SECOND) == find_sprites(moving_rollouts(7))


def test_pokes_last_two_frames():
    """Sprites are looked for two frames after f*, no more and no fewer, however long the tail."""
    # At f* 3 frames are played, and 5 two later: a third would find byte 35 frozen.
    assert (FIRST, SECOND) == find_sprites(moving_rollouts(7))
    # At f* 4 frames are played, and 6 two later: one frame earlier byte 35 still moves.
    assert (FIRST,) == find_sprites(moving_rollouts(7, frame=3))


def test_the_template_at_the_horizon():
    """The template is what the reference run shows at the horizon, moved by the bytes of the sprite."""
    moving = moving_rollouts(7)
    assert template_of(20, 40, FIRST.bytes) == template_at_horizon(moving, FIRST, moving.run([]).screen)


def test_what_does_not_move_at_the_horizon_has_no_template():
    """A byte that moves its sprite after two frames and no more at the horizon gives none."""
    moving = moving_rollouts(2)
    assert template_of(40, 60, SECOND.bytes) == template_at_horizon(moving, SECOND, moving.run([]).screen)
    moving = moving_rollouts(3)
    assert template_at_horizon(moving, SECOND, moving.run([]).screen) is None


@pytest.mark.parametrize(("smallest", "has_one"), [(10, True), (11, False)])
def test_a_template_has_enough_pixels(smallest, has_one, monkeypatch):
    """A sprite of fewer pixels than asked for has no template."""
    assert 4 == sprites_module.SMALLEST_TEMPLATE
    monkeypatch.setattr(sprites_module, "SMALLEST_TEMPLATE", smallest)
    moving = moving_rollouts(1)
    assert has_one is (template_at_horizon(moving, FIRST, moving.run([]).screen) is not None)


# --- real games ---


def random_trace(state, candidate):
    """A few seconds of random play: each action held for 1 to 12 frames, and a tail of 15."""
    generator = np.random.default_rng([2, state, candidate])
    frame = 180 + 120 * state + 90 * candidate
    actions = []
    while len(actions) < frame + 15:
        action = int(generator.integers(18))
        actions += [action] * int(generator.integers(1, 13))
    return Trace(tuple(actions[: frame + 15]), frame)


@cache
def movers_of(rom_id, state, candidate):
    """The slope (x, y) of every byte that moves something in that state."""
    with silenced_stderr():
        sprites = find_sprites(ExactRollouts(lambda: Emulator(game(rom_id)), random_trace(state, candidate)))
    return {each.address: (each.slope_x, each.slope_y) for sprite in sprites for each in sprite.bytes}


@pytest.mark.ale
@pytest.mark.parametrize(
    ("rom_id", "candidate", "slopes"),
    [
        ("pong", 0, {49: (1.0, 0.0), 54: (0.0, 1.0)}),  # the ball
        ("seaquest", 0, {70: (1.0, 0.0)}),  # the player
        ("freeway", 1, dict.fromkeys(range(108, 118), (1.0, 0.0))),  # ten cars
        ("montezuma_revenge", 0, {42: (1.0, 0.0)}),  # the player
    ],
)
def test_known_positions_are_found_without_labels(rom_id, candidate, slopes):
    """Bytes known to hold positions are found by what they move, and move it one pixel per unit."""
    found = movers_of(rom_id, 0, candidate)
    assert slopes == {address: found.get(address) for address in slopes}


@pytest.mark.ale
def test_a_car_is_displaced_by_what_its_byte_says():
    """Freeway's first car, moved by its byte, is found as many pixels away at the horizon, and lost when far away."""
    with silenced_stderr():
        rollouts = ExactRollouts(lambda: Emulator(game("freeway")), random_trace(0, 1))
        car = next(each for each in find_sprites(rollouts) if each.bytes[0].address == 108)
        template = template_at_horizon(rollouts, car, rollouts.run([]).screen)
        steps = (-20, -3, 0, 1, 7, 20, 40)
        value = int(rollouts.ram[108])
        screens = [rollouts.run([RamWrite(108, (value + step) % 256)]).screen for step in steps]
    distances, lost = displacement(template, np.stack(screens))
    assert [20.0, 3.0, 0.0, 1.0, 7.0, 20.0, 24.0] == distances.tolist()
    assert [False] * 6 + [True] == lost.tolist()
