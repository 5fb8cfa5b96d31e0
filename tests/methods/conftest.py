"""What the tests of methods share."""

import sys

import jaxtyping
import pytest


@pytest.fixture
def no_type_checks(monkeypatch):
    """The code as users run it.

    While tests run, type checks refuse many wrong values before our own checks see them, and draw from Python's global
    generator.
    """
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture
def clean_imports(tmp_path, monkeypatch):
    """Forget what a test appended to the search path, and the modules that it made."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]
