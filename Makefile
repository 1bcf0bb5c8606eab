# Everything runs in .venv, made from the pinned versions in constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest

.PHONY: demo test test-oldest check slow goldens house bench docs format clean

# What the package needs, so that the demo starts soon; then what its tests and docs need.
$(VENV)/.package: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e .
	touch $@

$(VENV)/.ready: $(VENV)/.package
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev,docs,sklearn,torch]'
	touch $@

$(OLDEST)/.ready: pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install -q -c constraints-oldest.txt -e '.[dev,docs,sklearn,torch]'
	touch $@

demo: $(VENV)/.package  ## A list is named, tables are published by a plan, and both are attacked. FOLDER=… names the folder.
	$(BIN)/python -m discreet.lab.demo $(FOLDER)

test: $(VENV)/.ready  ## The tests, on two cores; what could not be run is named. FULL=1: nothing may be skipped.
	$(BIN)/python -m pytest -q -n 2 -m "not slow" $(if $(FULL),--nothing-skipped)

# Outputs under recorded bytes and measured figures are compared with the pinned versions only.
test-oldest: $(OLDEST)/.ready  ## The tests that draw no samples, with every dependency at its floor.
	$(OLDEST)/bin/python -m pytest -q -n 2 -m "not slow and not statistical" --ignore tests/goldens

slow: $(VENV)/.ready  ## The nightly sizes.
	$(BIN)/python -m pytest -q -n 2 -m "slow" -s

goldens: $(VENV)/.ready  ## Outputs under recorded bytes are what they were. DO=record writes them anew, ONLY=… names families.
	$(BIN)/python scripts/goldens.py $(or $(DO),compare) $(ONLY)

house: $(VENV)/.ready  ## How many files, how long, how named, and through how many a call walks; the goal beside each figure.
	$(BIN)/python scripts/house.py

check: $(VENV)/.ready  ## Format, lint, types.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.ready  ## Side by side with the peers, each in its own environment below .bench/.
	$(BIN)/python -m benchmarks $(ONLY) $(if $(DATA),--data $(DATA))

docs: $(VENV)/.ready  ## The documentation, into site/.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) $(OLDEST) .bench site
