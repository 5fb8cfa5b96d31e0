"""What a method can reach: importing the methods brings neither the emulator nor the answer key into the process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import methods

# Import every module of `methods`, whichever there are, and print the names of all modules that this brought in.
IMPORT_ALL = """
import importlib, json, pkgutil, sys, methods
names = [found.name for found in pkgutil.walk_packages(methods.__path__, "methods.")]
for name in names:
    importlib.import_module(name)
print(json.dumps([names, sorted(sys.modules)]))
"""
OUT_OF_REACH = ("oracle.effects", "oracle.store", "oracle.emulator", "oracle.rollout", "harness", "ale_py")


def test_methods_reach_no_answer():
    """In a fresh interpreter, importing every module of `methods` imports no emulator, no answer key and no judge."""
    # The same source tree as here, wherever it is installed from.
    environment = os.environ | {"PYTHONPATH": str(Path(methods.__file__).parents[1])}
    command = [sys.executable, "-P", "-c", IMPORT_ALL]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    names, loaded = json.loads(done.stdout)
    assert {"methods.method", "methods.registry", "methods.integrated_gradients"} <= set(names)
    assert set(names) <= set(loaded)
    assert [] == [name for name in loaded if name.startswith(OUT_OF_REACH)]
