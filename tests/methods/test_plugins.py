"""Plugins in a file or in a module, and all that can be wrong with them."""

import importlib
import sys

import pytest

from games.errors import UnknownName, VeritariError
from methods.integrated_gradients import IntegratedGradients
from methods.method import BadMethod
from methods.registry import BadSpec, BrokenPlugin, NameTaken, resolve
from methods.vanilla_gradient import vanilla_gradient
from tests.methods.plugins import CLASS_PLUGIN, FUNCTION_PLUGIN, write
from tests.methods.tasks import CASES, draw_task, generator_of

pytestmark = pytest.mark.usefixtures("clean_imports")


def claim(method) -> list[float]:
    """What the method claims of the first case."""
    return method.claim(draw_task(CASES[0], method), generator=generator_of(0)).tolist()


# --- plugins in a file ---


def test_function_in_a_file(tmp_path):
    """A decorated function in a file is a method, and its parameters reach it."""
    path = write(tmp_path / "mine.py", FUNCTION_PLUGIN)
    method = resolve(f"{path}:gradient_times_ram(factor=0.5)")
    assert "gradient_times_ram(factor=0.5)" == method.label
    # On content the gradient is 1 at the byte, so the claim is half its value there and 0 elsewhere.
    task = draw_task(CASES[0], method)
    expected = (0.5 * task.ram * torch_one_hot(task)).tolist()
    assert expected == claim(method)


def torch_one_hot(task):
    """1 at the content byte of a task."""
    address = int(task.output.removeprefix("ram[").removesuffix("]"))
    return (task.ram.new_tensor(range(len(task.ram))) == address).double()


def test_class_in_a_file(tmp_path):
    """A class in a file is a method with its defaults or the given parameters, its annotations kept as text or not."""
    path = write(tmp_path / "mine.py", CLASS_PLUGIN.format(name="shifted", mode="fancy"))
    task = draw_task(CASES[0], resolve(f"{path}:Shifted"))
    assert (task.ram + 1).tolist() == claim(resolve(f"{path}:Shifted"))
    assert (task.ram + 4).tolist() == claim(resolve(f"{path}:Shifted(shift=4, mode='fancy')"))
    with pytest.raises(BadMethod, match="shifted: parameter mode: Input should be 'plain' or 'fancy', got 'odd'"):
        resolve(f"{path}:Shifted(mode='odd')")


def test_relative_path(tmp_path, monkeypatch):
    """A path without a folder is looked up in the working directory."""
    write(tmp_path / "mine.py", FUNCTION_PLUGIN)
    monkeypatch.chdir(tmp_path)
    assert "second" == resolve("mine.py:second").label


def test_colon_in_the_path(tmp_path):
    """The last colon separates the name: a path may have some of its own."""
    path = write(tmp_path / "at 12:30" / "mine.py", FUNCTION_PLUGIN)
    assert "second" == resolve(f"{path}:second").label


def test_same_stem_in_two_folders(tmp_path):
    """Two files of one name in two folders are two plugins, whichever was loaded last."""
    first = write(tmp_path / "a" / "mine.py", CLASS_PLUGIN.format(name="first", mode="early"))
    second = write(tmp_path / "b" / "mine.py", CLASS_PLUGIN.format(name="second", mode="late"))
    methods = [resolve(f"{path}:Shifted") for path in (first, second, first)]
    assert ["first", "second", "first"] == [method.label for method in methods]


def test_same_stem_keeps_its_types(tmp_path):
    """A plugin's parameters are checked by its own types after another file of the same name was loaded."""
    first = write(tmp_path / "a" / "mine.py", CLASS_PLUGIN.format(name="first", mode="early"))
    second = write(tmp_path / "b" / "mine.py", CLASS_PLUGIN.format(name="second", mode="late"))
    method = resolve(f"{first}:Shifted")
    resolve(f"{second}:Shifted")
    # `Mode` of the first file has "early"; the second file's has "late" in its place.
    assert "first(mode='early')" == method.with_parameters(mode="early").label


def test_missing_file(tmp_path):
    """A file that is not there is refused with its path."""
    with pytest.raises(BadSpec, match=r"absent\.py: expected a Python file, got none there; check the path"):
        resolve(f"{tmp_path / 'absent.py'}:mine")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import no_such_module_at_all", "got ModuleNotFoundError: No module named 'no_such_module_at_all'; mend it"),
        ("this is no Python", "got SyntaxError: .*; mend it"),
        ("1 / 0", "got ZeroDivisionError: division by zero; mend it"),
        ("open('/no/such/file/at/all')", "got FileNotFoundError: .*; mend it"),
    ],
)
def test_file_that_does_not_import(tmp_path, text, message):
    """A file that raises while it is imported is refused with its path and what it raised, and forgotten."""
    path = write(tmp_path / "mine.py", text)
    before = set(sys.modules)
    with pytest.raises(BrokenPlugin, match=rf"mine\.py: expected something that imports, {message}"):
        resolve(f"{path}:mine")
    assert before == set(sys.modules)


def test_file_that_exits(tmp_path):
    """A file that ends the program while it is imported, as scripts do, is refused like one that raises."""
    path = write(tmp_path / "mine.py", "import sys\nsys.exit(3)\n")
    with pytest.raises(BrokenPlugin, match=r"mine\.py: expected something that imports, got SystemExit: 3"):
        resolve(f"{path}:mine")


def test_no_such_attribute(tmp_path):
    """A name that the file lacks is the user's mistake, and is answered with the nearest and all that it has."""
    path = write(tmp_path / "mine.py", FUNCTION_PLUGIN)
    expected = r"unknown method of .*mine\.py 'secnd'; did you mean second\? Known: gradient_times_ram, second$"
    with pytest.raises(UnknownName, match=expected):
        resolve(f"{path}:secnd")
    empty = write(tmp_path / "empty.py", "NUMBER = 3\n")
    with pytest.raises(BadSpec, match="expected a method named 'third', got none in it; correct it") as it:
        resolve(f"{empty}:third")
    assert not isinstance(it.value, BrokenPlugin)


def test_no_such_attribute_of_a_module():
    """The same of a module."""
    with pytest.raises(UnknownName, match=r"^unknown method of methods\.rise 'Rize'; did you mean Rise\? Known: "):
        resolve("methods.rise:Rize")


def test_no_such_attribute_beside_a_class(tmp_path):
    """A name that the file lacks is answered with its classes too, and not with those it merely imports the base of."""
    path = write(tmp_path / "mine.py", CLASS_PLUGIN.format(name="shifted", mode="fancy"))
    with pytest.raises(UnknownName, match=r"'shifted'; did you mean Shifted\? Known: Shifted$"):
        resolve(f"{path}:shifted")


def test_attribute_that_is_no_method(tmp_path):
    """A name that is no method is refused, with what it is: a number, a class of something else, a bare function."""
    path = write(
        tmp_path / "mine.py", FUNCTION_PLUGIN + "\n    def bare(task, *, generator):\n        return task.ram\n"
    )
    for name, kind in [("NUMBER", "int"), ("bare", "function"), ("input_gradient", "function")]:
        with pytest.raises(
            BrokenPlugin,
            match=rf"expected a function with @method.* or a class below .*Method, got {kind}$",
        ):
            resolve(f"{path}:{name}")


def test_class_that_needs_arguments(tmp_path):
    """A class with a parameter that has no default is refused, with the parameter."""
    text = CLASS_PLUGIN.format(name="shifted", mode="fancy").replace("shift: int = 1", "shift: int")
    path = write(tmp_path / "mine.py", text)
    with pytest.raises(BrokenPlugin, match=r"Shifted: expected a default for every parameter, got: .*'shift'"):
        resolve(f"{path}:Shifted")


def test_function_that_needs_arguments(tmp_path):
    """A function with a parameter that has no default is refused too, before it is asked for a claim."""
    path = write(tmp_path / "mine.py", FUNCTION_PLUGIN.replace("factor: float = 1.0", "factor: float"))
    with pytest.raises(VeritariError, match=r"expected a default for every parameter, got .*factor"):
        resolve(f"{path}:gradient_times_ram")


def test_class_without_a_declaration(tmp_path):
    """A class that declares nothing is refused as a method that does not keep the contract."""
    text = """
        from dataclasses import dataclass
        from methods.method import Method

        @dataclass(frozen=True)
        class Undeclared(Method):
            def attribute(self, task, *, generator):
                return task.ram
    """
    path = write(tmp_path / "mine.py", text)
    with pytest.raises(VeritariError, match="Undeclared: expected a declaration"):
        resolve(f"{path}:Undeclared")


def test_taken_name(tmp_path):
    """A plugin with the name of a registered method is refused, with the registered one."""
    path = write(tmp_path / "mine.py", CLASS_PLUGIN.format(name="vanilla_gradient", mode="fancy"))
    message = "Shifted: the name 'vanilla_gradient' is taken by methods.vanilla_gradient:vanilla_gradient; rename"
    with pytest.raises(NameTaken, match=message):
        resolve(f"{path}:Shifted")


def test_registered_method_by_its_module():
    """A registered method may be named by its module: it does not take its own name."""
    assert vanilla_gradient is resolve("methods.vanilla_gradient:vanilla_gradient")
    assert IntegratedGradients(n_steps=8) == resolve("methods.integrated_gradients:IntegratedGradients(n_steps=8)")


# --- plugins in a module ---


def test_module_in_the_working_directory(tmp_path, monkeypatch):
    """A module of the working directory, in a package or not, gives a method."""
    write(tmp_path / "plugin_of_a_user.py", FUNCTION_PLUGIN)
    write(tmp_path / "package_of_a_user" / "deep.py", FUNCTION_PLUGIN)
    monkeypatch.chdir(tmp_path)
    assert "gradient_times_ram(factor=2.0)" == resolve("plugin_of_a_user:gradient_times_ram(factor=2.0)").label
    assert "second" == resolve("package_of_a_user.deep:second").label


def test_working_directory_is_appended_once(tmp_path, monkeypatch):
    """The working directory comes last on the search path, once, and moves nothing that was there."""
    write(tmp_path / "plugin_of_a_user.py", FUNCTION_PLUGIN)
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    resolve("plugin_of_a_user:second")
    resolve("plugin_of_a_user:gradient_times_ram")
    assert [*before, str(tmp_path)] == sys.path


def test_working_directory_shadows_nothing(tmp_path, monkeypatch):
    """Folders of the user with the names of ours, or of Python's modules, do not stand in for them."""
    write(tmp_path / "methods" / "__init__.py", "raise RuntimeError('shadowed')\n")
    write(tmp_path / "methods" / "vanilla_gradient.py", FUNCTION_PLUGIN)
    write(tmp_path / "colorsys.py", FUNCTION_PLUGIN)
    write(tmp_path / "plugin_of_a_user.py", FUNCTION_PLUGIN)
    monkeypatch.chdir(tmp_path)
    # As if nobody had imported Python's own yet.
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    resolve("plugin_of_a_user:second")
    assert vanilla_gradient is resolve("methods.vanilla_gradient:vanilla_gradient")
    assert hasattr(importlib.import_module("colorsys"), "rgb_to_hsv")


def test_module_that_is_not_there(tmp_path, monkeypatch):
    """A module that is not there is refused with its name; in our packages only our own are looked for."""
    write(tmp_path / "methods" / "of_a_user.py", FUNCTION_PLUGIN)
    monkeypatch.chdir(tmp_path)
    for name in ("no_such_module_at_all", "methods.of_a_user"):
        with pytest.raises(
            BadSpec, match=f"module {name}: expected something that imports, got ModuleNotFoundError: .*{name}"
        ):
            resolve(f"{name}:mine")


@pytest.mark.parametrize("target", [":mine", ".relative:mine", "a b:mine"])
def test_place_that_is_no_module(target):
    """A place that can be no module is refused as one."""
    with pytest.raises(BrokenPlugin, match=r"module .*: expected something that imports, got"):
        resolve(target)


def test_module_that_raises(tmp_path, monkeypatch):
    """A module that raises while it is imported is refused with what it raised."""
    write(tmp_path / "plugin_that_raises.py", "raise RuntimeError('not today')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BrokenPlugin, match=r"module plugin_that_raises: .* got RuntimeError: not today"):
        resolve("plugin_that_raises:mine")
