"""The picture of a game: which pixels are painted how strongly, and the file that the command writes."""

import io
import shutil

import numpy as np
import pytest
from matplotlib.image import imread

from games.catalog import game as game_of
from harness import api, cli, picture
from harness.drawing import Layout, Panel, Row, literal, overlaid, png
from harness.errors import CannotWrite, WrongUsage
from harness.game_views import Selection
from harness.regions import direct_footprints, is_picture, on_screen, painted, strengths, unseen_share
from harness.run_directory import RunDirectory
from oracle.effects import measure
from oracle.emulator import Emulator
from oracle.intervention import ActionWrite, Cause
from oracle.rollout import replay_film
from tests.harness.commands import plugin
from tests.toy import ToyMachine, toy_game, toy_protocol

# Of four pixels, of one that lies in it, of none, and of one elsewhere.
FOOTPRINTS = np.array(
    [[[1, 1, 0], [1, 1, 0]], [[0, 1, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 1]]], dtype=np.bool_
)


def decoded(content):
    """The pixels of a PNG file: red, green and blue, 0..255."""
    return np.round(imread(io.BytesIO(content))[..., :3] * 255).astype(np.uint8)


def cut_out(pixels, box):
    """What lies in a box of the layout, which counts from the lower left corner."""
    left, bottom, width, height = box
    return pixels[len(pixels) - bottom - height : len(pixels) - bottom, left : left + width]


def assert_sharp(frame, panel):
    """A panel has every pixel of the frame where it belongs, and no colour but the frame's own."""
    rows, columns = (
        (2 * np.arange(n) + 1) * side // (2 * n) for n, side in zip(frame.shape[:2], panel.shape[:2], strict=True)
    )
    np.testing.assert_array_equal(frame, panel[np.ix_(rows, columns)])
    assert set(map(tuple, frame.reshape(-1, 3))) == set(map(tuple, panel.reshape(-1, 3)))


# --- regions --------------------------------------------------------------------------------------------------------


def test_causes_are_painted_by_weight_and_size():
    """A pixel has the largest |weight| / sqrt(size) of the causes that change it, as a share of the picture's."""
    weights = np.array([-4.0, 1.0, 9.0, 5.0])
    # 4 / sqrt(4), 1 / sqrt(1), none for the largest weight, which changes no pixel, and 5 / sqrt(1).
    expected = np.array([0.4, 0.2, 0.0, 1.0])
    np.testing.assert_allclose(expected, strengths(weights, FOOTPRINTS))
    # The pixel of two causes has the stronger, not the sum.
    painting = np.array([[0.4, 0.4, 0.0], [0.4, 0.4, 1.0]])
    np.testing.assert_allclose(painting, painted(expected, FOOTPRINTS))
    assert 9 / 19 == unseen_share(weights, FOOTPRINTS)


def test_nothing_named_paints_nothing():
    """Claims that are zero or undefined paint no pixel, and neither do no causes at all."""
    strength = strengths(np.array([0.0, np.nan, 3.0, 0.0]), FOOTPRINTS)
    np.testing.assert_array_equal(np.zeros(4), strength)
    np.testing.assert_array_equal(np.zeros((2, 3)), painted(strength, FOOTPRINTS))
    np.testing.assert_array_equal(np.zeros((2, 3)), painted(np.zeros(0), FOOTPRINTS[:0]))
    assert 0.0 == unseen_share(np.zeros(4), FOOTPRINTS)


def test_maps_are_laid_on_the_screen_by_nearest_neighbour():
    """A map is averaged by size over its leading axes, and each pixel takes the cell in which its centre lies."""
    pixels = np.array([[[-3.0, 0.0], [1.0, 4.0]], [[1.0, 2.0], [-1.0, -4.0]]], dtype=np.float32)
    # Means of sizes 2, 1 / 1, 4. Of three columns, the middle of the second lies on the edge: it belongs to the right.
    expected = np.array([[2, 1, 1], [2, 1, 1], [1, 4, 4], [1, 4, 4]]) / 4
    np.testing.assert_allclose(expected, on_screen(pixels, (4, 3)))
    np.testing.assert_allclose(expected, on_screen(np.stack([pixels, -pixels]), (4, 3)))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((2, 84, 84), True), ((4, 3, 84, 84), True), ((84, 84), False), ((128,), False), ((210, 160, 3), False)],
)
def test_maps_of_other_shapes_are_no_pictures(shape, expected):
    """Only (channel, row, column) and (time, channel, row, column) lie on a screen; channels last would be torn."""
    assert expected == is_picture(np.zeros(shape, dtype=np.float32))


def test_footprints_are_the_pixels_of_either_frame():
    """A cause's footprint is every pixel that differs in one of two frames from a run straight through without it."""
    question = measure(toy_protocol(), toy_game(), 0, ToyMachine).question
    # An action of the third frame changes neither of the first two.
    late = Cause("late", ActionWrite(2, 3), removal=None, ram_address=None, vacuous=False)
    question = question.model_copy(update={"causes": (*question.causes, late)})
    measured = direct_footprints(ToyMachine, question)
    reference = replay_film(ToyMachine, question.trace, [], 2)
    for cause, footprint in zip(question.causes[:-1], measured[:-1], strict=True):
        film = replay_film(ToyMachine, question.trace, [cause.intervention], 2)
        expected = (film.frames[0] != reference.frames[0]) | (film.frames[1] != reference.frames[1])
        np.testing.assert_array_equal(expected, footprint)
    assert (True, False) == (measured.any(), measured[-1].any())


# --- drawing --------------------------------------------------------------------------------------------------------


def test_an_overlay_hides_the_frame_where_it_is_strongest():
    """Without a region the frame is grey and dimmed; the largest share is the brightest colour, whatever lies below."""
    frame = np.array([[[255, 255, 255], [255, 0, 0], [0, 0, 0]]], dtype=np.uint8)
    brightest = [0.988362, 0.998364, 0.644924]  # the end of inferno
    expected = [[[0.45] * 3, [0.299 * 0.45] * 3, brightest]]
    np.testing.assert_allclose(expected, overlaid(frame, np.array([[0.0, 0.0, 1.0]])), atol=1e-6)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$x$", r"\$x\$"),
        ("a\nb\t\x1b[1m\x00", "a b [1m"),
        ("\N{BRAIN}\ud800 é", "? é"),
        ("x" * 13, "x" * 11 + "…"),
        ("$" * 13, r"\$" * 11 + "…"),
    ],
)
def test_text_is_drawn_as_it_is(text, expected):
    """Mathematics is escaped, control characters are spaces, missing glyphs are marks, long text is cut."""
    assert expected == literal(text, 12)


def test_no_text_breaks_a_picture():
    """Whatever a method's label or reason holds is drawn, without an error or a warning."""
    text = "$\\frac{$ \N{BRAIN}\x00\n" + "$_{" * 200
    panel = Panel(text, instead=text, note=text)
    frame = np.zeros((210, 160, 3), dtype=np.uint8)
    assert (*Layout(210, 1, 2).size[::-1], 3) == decoded(png(frame, [Row(text, (panel,))])).shape


@pytest.mark.parametrize("n_rows", [210, 250])
def test_screens_are_sharp_and_4_to_3(n_rows):
    """A frame of any height is drawn 4:3, in its own colours only, each pixel where it belongs."""
    frame = np.random.default_rng(0).integers(0, 256, (n_rows, 160, 3), dtype=np.uint8)
    rows = [Row("", (Panel("", np.ones((n_rows, 160))), Panel("")))] * 2
    pixels, layout = decoded(png(frame, rows)), Layout(n_rows, 2, 3)
    width, height = layout.panel
    assert pytest.approx(4 / 3, abs=0.01) == width / height
    for index in range(2):
        assert_sharp(frame, cut_out(pixels, layout.box(index, 0)))
        # The end of inferno, everywhere.
        brightest = np.broadcast_to([252, 254, 164], (height, width, 3))
        np.testing.assert_allclose(brightest, cut_out(pixels, layout.box(index, 1)), atol=1)


# --- a run ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Pong, both subjects, with a method that fails."""
    folder = tmp_path_factory.mktemp("pong")
    methods = f"vanilla_gradient,sampler_gradient,grad_cam,{plugin('raising:raises')}"
    return api.run(
        protocol="ram-v1", games="pong", methods=methods, out=folder / "run", store=folder / "store", workers=1
    )


@pytest.fixture
def drawn(monkeypatch):
    """The rows that are drawn of a run, instead of their picture."""

    def rows_of(run, selection):
        kept = []
        monkeypatch.setattr(picture, "png", lambda frame, rows: kept.extend(rows) or b"")
        picture.draw_game(run, selection)
        return kept

    return rows_of


@pytest.mark.ale
def test_a_picture_shows_the_frame_itself(run):
    """The first panel of every row is the screen at the analysis frame, in exactly the emulator's colours."""
    trace = run.directory.answer_key("machine", "pong", 0).question.trace
    emulator = Emulator(game_of("pong"))
    for action in trace.prefix:
        emulator.act(action)
    pixels = decoded(picture.draw_game(run, Selection("pong")))
    layout = Layout(210, 4, 5)
    assert (*layout.size[::-1], 3) == pixels.shape
    for index in range(4):
        assert_sharp(emulator.colours(), cut_out(pixels, layout.box(index, 0)))


@pytest.mark.ale
def test_each_output_has_its_methods(run, drawn):
    """Rows are outputs; beside the truth stand the methods that explain the subject, none of them a control."""
    rows = drawn(run, Selection("pong"))
    assert [
        "Pong, frame 90: machine, content output ram[54] ball_y",
        "Pong, frame 90: machine, position output changed_pixels",
        "Pong, frame 90: network, content output readout[13] enemy_score",
        "Pong, frame 90: network, position output readout[51] player_y",
    ] == [row.heading for row in rows]
    names = [[panel.title.partition(",")[0] for panel in row.panels] for row in rows]
    on_machine = ["truth (oracle)", "vanilla_gradient", "sampler_gradient", "raises"]
    assert [on_machine] * 2 + [["truth (oracle)", "vanilla_gradient", "grad_cam"]] * 2 == names
    one = drawn(run, Selection("pong", method="sampler_gradient"))
    # The sampler explains the machine only.
    assert [2, 2] == [len(row.panels) for row in one]


@pytest.mark.ale
def test_panels_without_a_claim_say_why(run, drawn):
    """A method that failed, and one whose claim vanished, have their reason where the region would be."""
    _, position = drawn(run, Selection("pong", subject="machine"))
    _, vanilla, sampler, raises = position.panels
    assert "vanished: every cause has the same claim" == vanilla.instead
    assert ("", True) == (sampler.instead, sampler.region.any())
    assert ("failed: ValueError: expected a sprite, got none", "raises, F = 0.00") == (raises.instead, raises.title)


@pytest.mark.ale
def test_the_truth_lies_where_the_effects_are(run, drawn):
    """The strongest pixels of the truth are those of the cause with the largest |effect| / sqrt(pixels)."""
    truth = drawn(run, Selection("pong", subject="network"))[0].panels[0].region
    # Of the enemy's score, which the network reads: the digit in the upper left quarter.
    rows, columns = np.nonzero(truth == 1.0)
    assert (160, True, True) == (len(rows), rows.max() < 30, columns.max() < 80)


@pytest.mark.ale
def test_one_cause_alone_keeps_its_share(run, drawn):
    """With a cause chosen, only its footprint is painted, as strong as it is among all causes."""
    everything = drawn(run, Selection("pong", subject="network"))[1].panels[0].region
    background = drawn(run, Selection("pong", subject="network", cause="tia[COLUBK]:set"))[1].panels[0].region
    [share] = set(background[background > 0])
    assert (True, True) == (0 < share < 0.5, (everything >= background).all())


@pytest.mark.ale
def test_a_run_in_progress_is_drawn(run, drawn, tmp_path):
    """A claim that is not there yet has a panel that says so; a game without any finished task is refused."""
    shutil.copytree(run.path, tmp_path / "run")
    unfinished = api.Run(RunDirectory(tmp_path / "run"), from_units=True)
    [claim] = unfinished.path.glob("units/claims/sampler_gradient/*changed_pixels*")
    claim.unlink()
    _, position = drawn(unfinished, Selection("pong", subject="machine"))
    assert ("sampler_gradient, F = —", "no claim yet") == (position.panels[2].title, position.panels[2].instead)
    for outcome in unfinished.path.glob("units/oracle/*"):
        outcome.unlink()
    with pytest.raises(WrongUsage, match=r"^pong: expected a game with scores, got none \(no task of it is finished\)"):
        picture.draw_game(api.Run(unfinished.directory, from_units=True), Selection("pong"))


# --- the command ----------------------------------------------------------------------------------------------------


def show(*arguments):
    """`veritari show`, with its errors as they are raised."""
    cli.app(["show", *map(str, arguments)], standalone_mode=False)


@pytest.mark.ale
@pytest.mark.parametrize("json", [False, True])
def test_the_command_writes_the_picture(run, tmp_path, capsys, json):
    """`--image` writes the file and says so in the last line; with --json on stderr, where it spoils nothing."""
    path = tmp_path / "new" / "pong.png"
    show(run.path, "--game", "pong", "--method", "sampler_gradient", "--image", path, *(["--json"] if json else []))
    printed = capsys.readouterr()
    assert f"picture: {path}" == (printed.err if json else printed.out).splitlines()[-1]
    assert (json, not json) == ("picture" in printed.err, "picture" in printed.out)
    assert picture.draw_game(run, Selection("pong", method="sampler_gradient")) == path.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--image", "x.png"), "^--image: expected with --game GAME or --cost; add one$"),
        (
            ("--game", "pong", "--image", "x.jpg"),
            r"^--image: expected a file that ends in \.png, got x\.jpg; rename it$",
        ),
    ],
)
def test_images_that_do_not_fit_are_refused(arguments, message):
    """A picture is of one game, and a PNG file; both are told before anything is read."""
    with pytest.raises(WrongUsage, match=message):
        show("nowhere", *arguments)


@pytest.mark.ale
@pytest.mark.parametrize("name", ["taken.png", "file/pong.png"])
def test_a_picture_that_cannot_be_written_leaves_nothing(run, tmp_path, name):
    """A folder in the file's place, or a file in the folder's, is one line, and nothing is left behind."""
    (tmp_path / "taken.png").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(
        CannotWrite, match=r"\.png: expected a file that can be written, got .*; choose another --image$"
    ):
        show(run.path, "--game", "pong", "--image", tmp_path / name)
    assert ["file", "taken.png"] == sorted(path.name for path in tmp_path.rglob("*"))
