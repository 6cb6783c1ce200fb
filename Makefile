# Everything a person does with a checkout. `make help` lists it.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready
ARGS ?=

.PHONY: help demo test lint types unit system-packages evidence figures bench bench-server bench-tracker docs clean

help: ## list what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 18

demo: $(READY) ## put a film on a server and let eight viewers watch it (ARGS="--viewers 20 --film F")
	@$(BIN)/toast-lab demo $(ARGS)

test: $(READY) system-packages lint types unit ## lint, types, laws of the house, all tests

lint: $(READY) ## style and the laws of the house
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(READY) ## static types, strict
	$(BIN)/mypy

# Most tests wait more than they compute, so more of them run at once than there are cores; of those
# that start whole swarms or foreign programs, only two. What fails is tried again, since a machine
# may be busy with others: the report lists it as rerun.
unit: $(READY) ## the tests alone (ARGS="-k picker" picks some, and runs them one by one, once)
ifeq ($(strip $(ARGS)),)
	$(BIN)/pytest -n 3 --dist loadfile --reruns 1 -raR -m "not lab and not interop"
	$(BIN)/pytest -n 2 --dist loadfile --reruns 2 -raR -m "lab or interop"
else
	$(BIN)/pytest $(ARGS)
endif

system-packages: ## foreign programs that the tests talk to, where they can be installed
	@.ci/system-packages

evidence: $(READY) ## every figure that the documents state, in full size; resumes where it stopped
	$(BIN)/toast-lab evidence $(ARGS)

figures: $(READY) ## the source's figures, simulated in small; resumes (ARGS="--scale source")
	$(BIN)/toast-lab figure all --scale quick $(ARGS)

bench: $(READY) ## speed, each beside its baseline
	@for b in $(filter-out benchmarks/bench_server.py benchmarks/bench_tracker.py,$(wildcard benchmarks/bench_*.py)); do echo "== $$b"; $(BIN)/python $$b || exit 1; done

bench-server: $(READY) ## the VoD server beside nginx on the same core (ARGS="--quick --sizes 64k")
	@$(BIN)/python benchmarks/bench_server.py $(ARGS)

bench-tracker: $(READY) ## the tracker beside opentracker on the same core (ARGS="--rounds 3")
	@$(BIN)/python benchmarks/bench_tracker.py $(ARGS)

docs: $(READY) ## write the pages that are made from the programs
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/tables.py

clean: ## remove the environment and everything that runs left behind
	rm -rf .venv run build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

# A bare Debian has Python without venv; as root we can add it, otherwise we say what is missing.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or later is needed, and $(PYTHON) is not"; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv >/dev/null 2>&1 || .ci/python-venv $(PYTHON)
	@echo "setting up .venv (once)"
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
