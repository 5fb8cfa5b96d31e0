"""Methods found by registered name: ours, and those of other installed packages."""

from pathlib import Path

import pytest

from games.errors import UnknownName
from methods.integrated_gradients import IntegratedGradients
from methods.method import BadMethod
from methods.registry import BrokenPlugin, NameTaken, registered, resolve
from methods.vanilla_gradient import vanilla_gradient
from tests.methods.plugins import FUNCTION_PLUGIN, write

pytestmark = pytest.mark.usefixtures("clean_imports")


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of installed packages, first on the search path; the registry looks again before and after."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    registered.cache_clear()
    yield folder
    registered.cache_clear()


def install(site: Path, package: str, **entry_points: str) -> None:
    """Make a package with entry points of our group look installed."""
    lines = "\n".join(f"{name} = {value}" for name, value in entry_points.items())
    write(site / f"{package}-1.0.dist-info" / "METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    write(site / f"{package}-1.0.dist-info" / "entry_points.txt", f"[veritari.methods]\n{lines}\n")


def test_registered_name():
    """A registered name gives the function's method, or the class's with its defaults or the given parameters."""
    assert vanilla_gradient is resolve("vanilla_gradient")
    assert IntegratedGradients(n_steps=64) == resolve("integrated_gradients")
    assert IntegratedGradients(n_steps=16) == resolve(" integrated_gradients( n_steps = 16 ) ")


def test_registered_names_are_sorted():
    """The registry lists names in alphabetical order, whatever the order of installation."""
    assert sorted(registered()) == list(registered())


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("integrated_gradient", r"unknown method 'integrated_gradient'; did you mean integrated_gradients"),
        ("vanila_gradient(a=1)", r"unknown method 'vanila_gradient'; did you mean vanilla_gradient"),
        ("zzz", r"unknown method 'zzz'\. Known: .*sampler_gradient, .*vanilla_gradient"),
        ("", r"unknown method ''\. Known: .*integrated_gradients"),
    ],
)
def test_unknown_name(spec, message):
    """An unknown name is answered with the nearest known ones and the full list."""
    with pytest.raises(UnknownName, match=message):
        resolve(spec)


def test_wrong_parameters_of_registered_names():
    """A parameter that a registered method lacks, or of another type, is refused with the method's name."""
    with pytest.raises(BadMethod, match=r"integrated_gradients: expected a parameter of \(n_steps\), got 'steps'"):
        resolve("integrated_gradients(steps=3)")
    with pytest.raises(BadMethod, match=r"integrated_gradients: parameter n_steps: .* valid integer, got '3'"):
        resolve("integrated_gradients(n_steps='3')")
    with pytest.raises(BadMethod, match=r"vanilla_gradient: expected a parameter of \(none\), got 'n_steps'"):
        resolve("vanilla_gradient(n_steps=3)")


# --- entry points of other packages ---


def test_another_package_registers(site):
    """A method of an installed package is found by its name, as ours are."""
    write(site / "their_package.py", FUNCTION_PLUGIN)
    install(site, "theirs", gradient_times_ram="their_package:gradient_times_ram")
    assert "their_package:gradient_times_ram" == registered()["gradient_times_ram"].value
    assert "gradient_times_ram(factor=0.5)" == resolve("gradient_times_ram(factor=0.5)").label


def test_name_registered_twice(site):
    """Two packages that register one name are refused, both named."""
    install(site, "theirs", vanilla_gradient="their_package:vanilla")
    with pytest.raises(NameTaken, match="method vanilla_gradient: expected one entry point, got 2") as caught:
        registered()
    assert "their_package:vanilla" in str(caught.value)
    assert "methods.vanilla_gradient:vanilla_gradient" in str(caught.value)
    assert "uninstall one" in str(caught.value)


def test_entry_point_seen_twice(site):
    """One entry point seen twice, installed and in the working directory, is one method."""
    install(site, "veritari_again", vanilla_gradient="methods.vanilla_gradient:vanilla_gradient")
    assert vanilla_gradient is resolve("vanilla_gradient")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("no_such_package_at_all:mine", "no_such_package_at_all"),
        ("their_package:absent", "absent"),
    ],
)
def test_entry_point_that_does_not_load(site, value, message):
    """A registered method whose package is broken is refused as one that does not import, not by a raw error."""
    write(site / "their_package.py", FUNCTION_PLUGIN)
    install(site, "theirs", theirs=value)
    with pytest.raises(BrokenPlugin, match=message):
        resolve("theirs")


def test_entry_point_that_is_no_method(site):
    """A registered object that is no method is refused, with what it is."""
    write(site / "their_package.py", FUNCTION_PLUGIN)
    install(site, "theirs", theirs="their_package:NUMBER")
    with pytest.raises(
        BrokenPlugin,
        match=r"theirs: expected a function with @method.* or a class below .*Method, got int",
    ):
        resolve("theirs")
