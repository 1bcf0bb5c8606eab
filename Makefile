# Everything runs in .venv, made from the pinned versions in constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest

.PHONY: demo quick test slow test-oldest soak check goldens house bench docs dist renew format clean

# What the package needs, so that the demo starts soon; then what its tests and docs need.
$(VENV)/.package: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e .
	touch $@

$(VENV)/.ready: $(VENV)/.package
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev,docs,lakes,mcp,notebook,postgres,server,sklearn,spark,torch]'
	touch $@

$(OLDEST)/.ready: pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install -q -c constraints-oldest.txt -e '.[dev,docs,lakes,mcp,notebook,postgres,server,sklearn,spark,torch]'
	touch $@

demo: $(VENV)/.package  ## A list is named, tables are published by a plan, and both are attacked. FOLDER=… names the folder.
	$(BIN)/python -m discreet.lab.demo $(FOLDER)

quick: $(VENV)/.ready  ## The first case of every test that is not long. FLOOR=query: three cases of those in tests/query, under a minute.
	$(BIN)/python -m pytest -q -n 2 $(if $(FLOOR),--quick 3 tests/$(FLOOR),--quick 1)

test: $(VENV)/.ready  ## The tests, on two cores; what could not be run is named. FULL=1: the slow ones as well, and nothing may be skipped.
	$(BIN)/python -m pytest -q -n 2 $(if $(FULL),-m "not soak" --nothing-skipped,-m "not slow and not soak")

slow: $(VENV)/.ready  ## Only the slow tests, which FULL=1 adds.
	$(BIN)/python -m pytest -q -n 2 -m slow

soak: $(VENV)/.ready  ## Kills, races and fuzz at other moments and with other inputs in every round, for MINUTES=60. ONLY=… names files or folders.
	$(BIN)/python scripts/soak.py --minutes $(or $(MINUTES),60) $(ONLY)

# Outputs under recorded bytes and measured figures are compared with the pinned versions only.
test-oldest: $(OLDEST)/.ready  ## The tests that draw no samples, with every dependency at its floor.
	$(OLDEST)/bin/python -m pytest -q -n 2 -m "not slow and not statistical" --ignore tests/goldens

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
	$(BIN)/python -m benchmarks $(ONLY) $(if $(DATA),--data $(DATA)) $(if $(SCRATCH),--scratch $(SCRATCH))

docs: $(VENV)/.ready  ## The documentation, into site/; every link of what was built leads somewhere.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python scripts/check_site.py site

dist: $(VENV)/.ready  ## Wheel and source distribution, into dist/; both answer in an environment of their own, without the repository.
	rm -rf dist
	$(BIN)/python -m hatchling build --directory dist
	$(BIN)/python scripts/check_dist.py dist $(TAG)

renew: $(VENV)/.ready  ## Write what is made from the code and from the bibliography: lists, reference pages, schemas.
	$(BIN)/python docs/make_floors.py
	$(BIN)/python docs/make_references.py
	$(BIN)/python docs/make_reference.py
	$(BIN)/python scripts/make_cli_schemas.py
	$(BIN)/python scripts/make_policy_schema.py
	$(BIN)/python scripts/make_release_plan_schema.py

clean:
	rm -rf $(VENV) $(OLDEST) .bench dist site
