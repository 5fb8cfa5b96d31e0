"""`veritari methods new`: what it writes works as it stands, and nothing is ever overwritten."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from games.errors import UnknownName
from harness import cli
from harness.check import check_method
from harness.claims import DEFAULT_BUDGET
from harness.errors import CannotWrite, WrongUsage
from harness.pool import Limits
from harness.scaffold import DOMAINS, PACKAGE, TEMPLATES, new_method
from harness.trial import Trial
from methods.registry import registered, resolve

ROOT = Path(__file__).parent.parent.parent
LIMITS = Limits(workers=1, timeout_seconds=60.0, memory_gib=4.0)
# The formatter must have nothing to do whatever the length of a name.
LONG = "a_method_with_quite_a_long_name_that_takes_much_of_a_line_and_still_is_one"
NO_PLACE = "expected a place that can be written, got Not a directory; choose another name or --folder"
FILES = ["my_method.py", "pyproject.toml", "README.md", "tests/test_my_method.py"]

every_domain = pytest.mark.parametrize("domain", DOMAINS)


def new(name, folder, *, domain="ram", package=False):
    """What `new_method` writes, with the defaults of the command line."""
    return new_method(name, domain=domain, folder=folder, package=package)


def below(folder):
    """Every file and folder in a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def run_in(folder, *arguments):
    """A Python tool in a process of its own: its exit code, and what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    finished = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return finished.returncode, finished.stdout + finished.stderr


# --- what is written ------------------------------------------------------------------------------------------------


@every_domain
def test_a_file_declares_what_was_asked_for(tmp_path, domain):
    """The file holds one method of the given name and domain, and says where to change it."""
    [file] = new("my_method", tmp_path, domain=domain).files
    declared = resolve(f"{file}:my_method").declaration
    assert ("my_method", domain) == (declared.name, declared.domain)
    text = file.read_text(encoding="utf-8")
    assert (True, False) == ("Change the" in text, "$" in text)


@pytest.mark.ale
@every_domain
def test_a_new_method_passes_its_check(tmp_path, domain):
    """What is written keeps every requirement of `methods check` as it stands, and names something."""
    [file] = new("my_method", tmp_path, domain=domain).files
    verdicts = check_method(f"{file}:my_method", Trial("ram-v1", "pong", seed=0), LIMITS).verdicts
    # One for the description, seven per output.
    assert (15, []) == (len(verdicts), [each for each in verdicts if not each.kept])
    assert [] == [each.detail for each in verdicts if each.detail.startswith("0 of")]


def test_a_package_has_its_entry_point(tmp_path):
    """The package registers `name:name` in the group that Veritari reads, and ships the module of that name."""
    written = new("my_method", tmp_path, package=True)
    assert [tmp_path / "my_method" / file for file in FILES] == list(written.files)
    project = tomllib.loads(written.files[1].read_text(encoding="utf-8"))
    assert {"veritari.methods": {"my_method": "my_method:my_method"}} == project["project"]["entry-points"]
    assert ("my_method", ["my_method"]) == (project["project"]["name"], project["tool"]["setuptools"]["py-modules"])
    commands = re.search(r"```\n(.*?)```", written.files[2].read_text(encoding="utf-8"), flags=re.DOTALL)[1]
    assert [
        "python -m pip install -e .",
        "veritari methods check my_method",
        "veritari run --games core --states 1 --methods default,my_method",
    ] == commands.splitlines()


@pytest.mark.ale
def test_the_tests_of_a_package_pass(tmp_path):
    """The package's own test passes before anything is installed, and fails once the method is broken."""
    module, *_ = new("my_method", tmp_path, package=True).files
    code, text = run_in(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", "my_method")
    assert (0, True) == (code, "1 passed" in text)
    module.write_text(module.read_text(encoding="utf-8").replace(".mean(0)", ".mean()"), encoding="utf-8")
    code, text = run_in(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", "my_method")
    assert (1, True) == (code, "expected shape (128,), got ()" in text)


@every_domain
@pytest.mark.parametrize("name", ["my_method", LONG])
def test_what_is_written_is_in_the_style_of_the_house(tmp_path, domain, name):
    """Ruff, with this project's settings, finds nothing in a new file or package and would format nothing."""
    new(name, tmp_path, domain=domain)
    new(name, tmp_path, domain=domain, package=True)
    settings = ("--no-cache", "--config", str(ROOT / "pyproject.toml"))
    # The module of a package is read in its own folder, as its author would.
    for folder, target in ((tmp_path, f"{name}.py"), (tmp_path / name, ".")):
        assert (0, "All checks passed!\n") == run_in(folder, "ruff", "check", *settings, target)
        assert 0 == run_in(folder, "ruff", "format", "--check", *settings, target)[0]


def test_the_budget_is_the_one_that_is_kept(tmp_path):
    """The number of rollouts that the example for causes states is the one that a task allows."""
    [file] = new("my_method", tmp_path, domain="cause").files
    text = file.read_text(encoding="utf-8")
    assert [str(DEFAULT_BUDGET)] == re.findall(r"a task allows (\d+)\.", text)


def test_templates_are_shipped():
    """Every template in the folder is used, and matches a pattern of the package data."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["harness"]
    shipped = {path for pattern in patterns for path in (ROOT / "harness").glob(pattern)}
    used = {TEMPLATES / f"{name}.txt" for name in (*(f"{domain}.py" for domain in DOMAINS), *PACKAGE.values())}
    assert (used, used) == (shipped, set(TEMPLATES.iterdir()))


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["MyMethod", "my-method", "1st", "_mine", "", "my method", "méthode", "../mine", "a\n"]
)
def test_names_are_in_snake_case(tmp_path, name):
    """A name that can't be a method's is refused before anything is written."""
    with pytest.raises(WrongUsage, match=r"^method name: expected snake case like 'my_method', got "):
        new(name, tmp_path)
    assert [] == below(tmp_path)


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        *((name, f"taken by {registered()[name].value}") for name in ("occlusion", "grad_cam")),
        *((name, "the name of a control") for name in ("oracle", "random", "uniform")),
        *((name, "a group of methods") for name in ("default", "all")),
        *((name, "a word of Python") for name in ("lambda", "sum")),
        *((name, "an installed module") for name in ("numpy", "torch", "methods", "statistics")),
        *((name, "used by the example itself") for name in ("method", "input_gradient")),
    ],
)
def test_taken_names_are_refused(tmp_path, name, owner):
    """A name that belongs to a method, a control, a module or the example's own code is refused, with its owner."""
    expected = f"^method name: expected a free one, {name!r} is {re.escape(owner)}; choose another$"
    with pytest.raises(WrongUsage, match=expected):
        new(name, tmp_path)
    assert [] == below(tmp_path)


@pytest.mark.parametrize("name", ["pillow", "python_dateutil", "veritari", "scikit_learn"])
def test_names_of_installed_packages_are_refused(tmp_path, name):
    """A package of that name would replace the installed one; a single file would not."""
    expected = f"^package name: expected a free one, {name!r} is an installed package, which it would replace; "
    with pytest.raises(WrongUsage, match=expected):
        new(name, tmp_path, package=True)
    assert [] == below(tmp_path)
    new(name, tmp_path)


def test_a_name_that_pip_refuses_is_refused(tmp_path):
    """A method may end in an underscore, a package may not."""
    with pytest.raises(WrongUsage, match=r"^package name: expected one that ends in a letter or digit, got 'my_'; "):
        new("my_", tmp_path, package=True)
    assert [] == below(tmp_path)


@pytest.mark.parametrize("folder", ["a,b", "a(b)", "it's", "a]b"])
def test_a_folder_that_no_specification_can_name_is_refused(tmp_path, folder):
    """Nobody could ask the method by its path; a package is asked by its name."""
    with pytest.raises(WrongUsage, match=r"^--folder: expected a path that can stand in --methods, got .*; choose one"):
        new("my_method", tmp_path / folder)
    assert [] == below(tmp_path)
    new("my_method", tmp_path / folder, package=True)


def test_an_unknown_domain_is_refused(tmp_path):
    """A domain that nobody knows is refused with the nearest one."""
    with pytest.raises(UnknownName, match=r"^unknown domain 'pixel'; did you mean pixels\? Known: cause, pixels, ram$"):
        new("my_method", tmp_path, domain="pixel")
    assert [] == below(tmp_path)


@pytest.mark.parametrize(("package", "place"), [(False, "my_method.py"), (True, "my_method")])
@pytest.mark.parametrize("folder", [False, True])
def test_nothing_is_overwritten(tmp_path, package, place, folder):
    """What is there already, file or folder, stays as it is."""
    there = tmp_path / place
    if folder:
        there.mkdir()
    else:
        there.write_text("mine", encoding="utf-8")
    expected = f"^{there}: expected nothing there, got a file or folder; choose another name or --folder$"
    with pytest.raises(WrongUsage, match=expected):
        new("my_method", tmp_path, package=package)
    assert [place] == below(tmp_path)
    assert folder or there.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(("package", "place"), [(False, "my_method.py"), (True, "my_method")])
@pytest.mark.parametrize("folder", ["file/there", "file/there/deep"])
def test_a_folder_that_can_not_be_made_is_told(tmp_path, package, place, folder):
    """A folder below a file is one line with the reason."""
    (tmp_path / "file").touch()
    target = tmp_path / folder / place
    expected = f"^{target}: expected a place that can be written, got Not a directory; choose another name or --folder$"
    with pytest.raises(CannotWrite, match=expected):
        new("my_method", tmp_path / folder, package=package)
    assert ["file"] == below(tmp_path)


@pytest.mark.parametrize(("package", "place"), [(False, "my_method.py"), (True, "my_method/my_method.py")])
def test_a_folder_that_is_not_there_is_made(tmp_path, package, place):
    """With all that lead to it."""
    new("my_method", tmp_path / "nowhere" / "there", package=package)
    assert (tmp_path / "nowhere" / "there" / place).is_file()


@pytest.mark.parametrize("package", [False, True])
def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch, package):
    """Where a file can be written in part only, nothing of it stays."""
    broken = "pyproject.toml" if package else "my_method.py"

    class Full:
        """An open file on a disk without room."""

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def write(self, text):
            """The failure."""
            raise OSError(28, "No space left on device")

    opened = Path.open

    def opening(path, *arguments, **options):
        file = opened(path, *arguments, **options)
        if path.name != broken:
            return file
        file.close()
        return Full()

    monkeypatch.setattr(Path, "open", opening)
    with pytest.raises(CannotWrite, match=f"{broken}: expected a place that can be written, got No space left on"):
        new("my_method", tmp_path, package=package)
    assert [] == below(tmp_path)


# --- the command ----------------------------------------------------------------------------------------------------


def typed(monkeypatch, capfd, *arguments):
    """`veritari methods new` in this process: its exit code, and the lines it printed."""
    monkeypatch.setattr(sys, "argv", ["veritari", "methods", "new", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return stop.value.code, *(text.splitlines() for text in capfd.readouterr())


def test_the_command_says_what_it_wrote_and_what_is_next(monkeypatch, capfd, tmp_path):
    """The command prints the file, then the two commands that check and grade it, ready for a shell."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my methods").mkdir()
    assert [
        "wrote my_method.py",
        "next:",
        "  veritari methods check my_method.py:my_method",
        "  veritari run --games core --states 1 --methods default,my_method.py:my_method",
    ] == typed(monkeypatch, capfd, "my_method")[1]
    _, out, _ = typed(monkeypatch, capfd, "my_method", "--folder", "my methods", "--domain", "cause")
    assert "  veritari methods check 'my methods/my_method.py:my_method'" == out[2]
    assert "  veritari run --games core --states 1 --methods 'default,my methods/my_method.py:my_method'" == out[3]


def test_a_folder_that_looks_like_an_option(monkeypatch, capfd, tmp_path):
    """A folder whose name begins with a dash is written as a path, so that no command takes it for an option."""
    monkeypatch.chdir(tmp_path)
    _, out, _ = typed(monkeypatch, capfd, "my_method", "--folder", "-d")
    assert "  veritari methods check ./-d/my_method.py:my_method" == out[2]
    assert (tmp_path / "-d" / "my_method.py").is_file()


def test_the_command_writes_a_package(monkeypatch, capfd, tmp_path):
    """With --package the commands are the ones that install it and check it by its name."""
    monkeypatch.chdir(tmp_path)
    code, out, _ = typed(monkeypatch, capfd, "my_method", "--package")
    wrote = [f"wrote my_method/{file}" for file in FILES]
    commands = ["  python -m pip install -e ./my_method", "  veritari methods check my_method"]
    assert (0, [*wrote, "next:", *commands]) == (code, out)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("Mine",), (2, "method name: expected snake case like 'my_method', got 'Mine'; rename it")),
        (("mine", "--domain", "rom"), (2, "unknown domain 'rom'; did you mean ram? Known: cause, pixels, ram")),
        (("mine", "--folder", "/dev/null/there"), (1, f"/dev/null/there/mine.py: {NO_PLACE}")),
    ],
)
def test_an_error_of_the_command_is_one_line(monkeypatch, capfd, tmp_path, arguments, expected):
    """A wrong use exits with 2, a folder that can't be written with 1; both say so in one line."""
    monkeypatch.chdir(tmp_path)
    code, text = expected
    told = [f"veritari methods new: {arguments[0]}", f"error: {text}"]
    assert (code, [], told) == typed(monkeypatch, capfd, *arguments)
    assert [] == below(tmp_path)
