# `make demo` and `make test` each work as the only command on a machine with make and Python 3.11 or later.
# They install into .venv; delete that directory to start afresh.

.DEFAULT_GOAL := help
SHELL := /bin/sh

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed

# The first Python that is new enough; `make PYTHON=/path/to/python ...` chooses another one.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

# Options for every run of the test suite, such as `make test PYTEST_ARGS="-k wheel"`. Tests differ in length by a factor of
# thousands: a process that has run out of its own takes some of the other's.
PYTEST_ARGS ?= -n 2 --dist worksteal

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

$(BIN)/python:
	@test -n '$(PYTHON)' || { echo 'No Python 3.11 or later was found. Install one, or name it: make PYTHON=/path/to/python'; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# Installs again only when what is to be installed has changed.
$(READY): pyproject.toml constraints.txt | $(BIN)/python
	@echo 'Installing into $(VENV). torch is large: this can take some minutes the first time.'
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

.PHONY: demo
demo: $(READY) ## judge the built-in subjects, in under two minutes
	$(BIN)/gradcheck-plus demo

# One thread in each of the two workers: the tensors are small, and more threads would only wait for each other.
.PHONY: test
test: $(READY) ## run the tests and measure their coverage
	@$(BIN)/coverage erase
	OMP_NUM_THREADS=1 $(BIN)/coverage run -m pytest $(PYTEST_ARGS)
	@$(BIN)/coverage combine --quiet

.PHONY: coverage
coverage: $(READY) .coverage ## print the coverage of the last `make test`; fails under the floor
	$(BIN)/coverage report

.coverage:
	$(MAKE) test

.PHONY: quality
quality: $(READY) ## does the detector find the planted faults, and stay silent on their twins?
	OMP_NUM_THREADS=1 $(BIN)/pytest $(PYTEST_ARGS) tests/quality

.PHONY: lint
lint: $(READY) ## check style and formatting
	$(BIN)/ruff check
	$(BIN)/ruff format --check

.PHONY: fmt
fmt: $(READY) ## repair style and formatting
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.PHONY: types
types: $(READY) ## check the types
	$(BIN)/mypy

.PHONY: layers
layers: $(READY) ## check that modules import only from layers below their own
	$(BIN)/lint-imports

# Not `.` and not `strategies`: through the package alone each module has one name.
.PHONY: docs
docs: $(READY) ## run the examples in docstrings and pages
	$(BIN)/pytest --doctest-modules gradcheck_plus
	$(BIN)/pytest tests/docs

# Without build/, whose stale modules would be shipped again.
.PHONY: wheel
wheel: $(READY) ## check what a wheel and an sdist hold, and build them into dist/
	rm -rf build dist
	$(BIN)/pytest tests/packaging
	$(BIN)/python -m build --no-isolation --quiet

.PHONY: bench
bench: $(READY) ## run the benchmarks
	set -e; for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script; done

.PHONY: clean
clean: ## remove what builds and tools leave behind; keeps .venv
	rm -rf build dist htmlcov *.egg-info .coverage .coverage.* .*_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
