# Everything runs in .venv, which is made and kept up to date here.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: leaderboard test check bench reference clean
.DEFAULT_GOAL := leaderboard

leaderboard: $(VENV)/.installed
	$(BIN)/veritari run

test: check
	$(BIN)/python -m pytest -n auto --dist worksteal

check: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks.speed

# Replaces the committed reference leaderboard by what this checkout computes.
reference: $(VENV)/.installed
	$(BIN)/python -m benchmarks.reference

clean:
	rm -rf $(VENV) build *.egg-info

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "error: expected Python 3.11 or newer as '$(PYTHON)'; install it or run: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
		|| { echo "error: expected the Python modules venv and ensurepip (Debian: apt install python3-venv)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@
