# `make` alone lists the targets. Everything lands in .venv and var/; delete them to start afresh.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
RUN_STAMP := $(VENV)/.installed-run
DEV_STAMP := $(VENV)/.installed-dev
# pytest's workers: a browser or a server in each, so more than four mostly wait for each other.
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); [ "$$n" -gt 4 ] && n=4; echo $$n)

.DEFAULT_GOAL := help
.PHONY: help setup run test test-all lint format bench soak audit

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "Runsight needs Python 3.11 to 3.13, and '$(PYTHON)' was not found. Install it, or name one: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { echo "Runsight needs Python 3.11 to 3.13, and '$(PYTHON)' is $$($(PYTHON) --version). Name another: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "'$(PYTHON)' cannot make virtual environments. On Debian or Ubuntu: apt-get install python3-venv"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(RUN_STAMP): pyproject.toml | $(BIN)/python
	@echo "Installing Runsight into $(VENV) (a minute or two, once) ..."
	@$(PIP) --editable .
	@touch $@

$(DEV_STAMP): pyproject.toml | $(BIN)/python
	@echo "Installing Runsight and its development tools into $(VENV) (a few minutes, once) ..."
	@$(PIP) --editable '.[dev]'
	@touch $@ $(RUN_STAMP)

setup: $(RUN_STAMP) ## make .venv and install what running needs

run: $(RUN_STAMP) ## serve the app with demo data on http://127.0.0.1:8000 (HOST, PORT)
	@exec $(BIN)/python manage.py up

PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test: $(DEV_STAMP) ## run the tests of an ordinary change on SQLite, some minutes (ARGS names others)
	@$(PYTEST) $(or $(ARGS),-m "not slow")

test-all: $(DEV_STAMP) ## run every test, then those of storage on PostgreSQL, as CI does
	@$(PYTEST)
	@RUNSIGHT_TEST_DATABASE=postgres $(PYTEST) -m storage

lint: $(DEV_STAMP) ## ruff, djhtml and strict mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/djhtml --tabwidth 2 --check templates
	@! LC_ALL=C.UTF-8 grep -rnE --include='*.html' '.{121}' templates
	@$(BIN)/mypy

format: $(DEV_STAMP) ## let ruff fix and format, and djhtml indent the templates
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/djhtml --tabwidth 2 templates

bench: $(DEV_STAMP) ## run every benchmark
	@for script in $$(grep -l __main__ benchmarks/*.py); do echo "== $$script"; $(BIN)/python $$script || exit 1; done

soak: $(DEV_STAMP) ## play the faults for hundreds of kills (half an hour or so); figures in var/faults.jsonl
	@mkdir -p var && RUNSIGHT_SOAK=1 RUNSIGHT_FAULT_FIGURES=$(CURDIR)/var/faults.jsonl $(BIN)/python -m pytest -n $(WORKERS) tests/faults tests/workflows/execution/test_survival.py
	@RUNSIGHT_SOAK=1 RUNSIGHT_TEST_DATABASE=postgres $(BIN)/python -m pytest -n $(WORKERS) tests/workflows/execution/test_survival.py

audit: $(DEV_STAMP) ## look for known faults in our code and in what it depends on (needs the network)
	@$(BIN)/bandit --quiet --recursive --configfile pyproject.toml runsight_site workflows_app evals_app
	@$(BIN)/python -m pip freeze --exclude-editable > $(VENV)/audited.txt
	@$(BIN)/pip-audit --strict --no-deps --disable-pip --requirement $(VENV)/audited.txt
	@RUNSIGHT_HOME=$$(mktemp -d) RUNSIGHT_URL=https://runsight.example.com $(BIN)/python manage.py check --deploy --fail-level WARNING
