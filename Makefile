# `make demo` and `make test` need nothing but Python 3.11 or newer: they make a virtual environment and install into it.
#
#   PYTHON   the Python to make the environment with (python3, if it is new enough)
#   VENV     where the environment is; it is made once, and brought up to date when pyproject.toml changes
#   TORCH    the torch to install, 2.13.0 by default: the newest release that cmir is tested with on a CPU. If the Python
#            has torch and triton already (a CPU build of torch, say), the environment uses those and installs neither.
#   JOBS     processes for lit and pytest
#   GPU_JOBS processes for the tests that need a GPU: most of their time is compiling
#   SPECS    random specs of `make fuzz`
#   BENCH    arguments of the benchmark

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help dev demo test test-gpu lint format types lit unit fuzz bench clean

NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c '$(NEW_ENOUGH)' >/dev/null 2>&1 && { echo $$p; break; }; done)
VENV ?= .venv
TORCH ?= torch==2.13.0
JOBS ?= 2
GPU_JOBS ?= 14
SPECS ?= 2000
BENCH ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
# A path, not an import hook: else a script beside the clone would take the folder of that name for the package.
EDITABLE := --config-settings editable_mode=compat
MADE := $(VENV)/.made
RUNTIME := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
# The oldest Triton that cmir runs with, beside the installed one: kernels must compile with both.
OLDEST := $(VENV)/triton-3.6.0

# $(call step,name,command): says what runs, and what it was that failed
define step
@echo "== $(1)"; $(2) || { echo "== FAILED: $(1)" >&2; exit 1; }
endef

# Says what is missing where there is no GPU.
GPU = $(BIN)/python -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' \
	|| { echo "make $@ needs a GPU that torch sees; $$($(BIN)/python -c 'import torch; print("torch", torch.__version__)') sees none" >&2; exit 1; }

LINT := $(BIN)/python -m ruff check .
FORMAT := $(BIN)/python -m ruff format --check .
TYPES := $(BIN)/python -m pyright --pythonpath $(BIN)/python
LIT := $(BIN)/python -c 'from lit.main import main; main()' -sv -j $(JOBS) tests/lit
# Neighbours share what they compile: workers begin with a stretch of the tests each, and take from each other at the end.
UNIT := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal
OFFLINE := CMIR_TRITON=$(OLDEST) $(UNIT) tests/unit/lowering/test_offline*.py

help: ## show the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'

dev: $(DEV) ## the environment alone, with all that tests need: source .venv/bin/activate

demo: $(RUNTIME) ## install what it takes and run the compiler end to end on the HSTU mask
	@$(BIN)/python -m cmir.tools.demo

test: $(DEV) $(OLDEST) ## lint, formatting, types, lit and unit tests; stops at the first that fails
	$(call step,lint (ruff check),$(LINT))
	$(call step,formatting (ruff format),$(FORMAT))
	$(call step,types (pyright),$(TYPES))
	$(call step,lit,$(LIT))
	$(call step,unit tests (pytest),$(UNIT))
	$(call step,kernels compile with triton 3.6.0 too (pytest),$(OFFLINE))

test-gpu: $(DEV) ## the tests that need a GPU: every test by name, then the figures of the run
	@$(GPU)
	@CMIR_TEST_GPU=1 $(BIN)/python -m pytest tests/gpu -v -n $(GPU_JOBS)

lint: $(DEV) ## ruff check and ruff format --check
	$(call step,lint (ruff check),$(LINT))
	$(call step,formatting (ruff format),$(FORMAT))

format: $(DEV) ## let ruff rewrite the sources
	@$(BIN)/python -m ruff check --fix .
	@$(BIN)/python -m ruff format .

types: $(DEV) ## pyright
	$(call step,types (pyright),$(TYPES))

lit: $(DEV) ## FileCheck tests
	$(call step,lit,$(LIT))

unit: $(DEV) ## pytest
	$(call step,unit tests (pytest),$(UNIT))

fuzz: $(DEV) ## thousands of random specs, for a night: every stage compared with the rule (SPECS=2000)
	$(call step,random specs (pytest),CMIR_FUZZ=$(SPECS) $(UNIT) tests/unit/passes/test_random.py)

bench: $(RUNTIME) ## measure attention and preprocessing on this machine's GPU
	@$(GPU)
	@$(BIN)/python -m benchmarks.operator $(BENCH)

clean: ## remove the environment and the caches in this folder
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis tests/lit/Output build *.egg-info

$(MADE):
	@test -n "$(PYTHON)" || { echo "cmir needs Python 3.11 or newer (set PYTHON=...)" >&2; exit 1; }
	@echo "== making $(VENV) with $(PYTHON)"
	@rm -rf $(VENV)
	@if $(PYTHON) -c 'import torch, triton' 2>/dev/null; then site=--system-site-packages; fi; \
	$(PYTHON) -m venv $${site:-} $(VENV) || { echo "$(PYTHON) cannot make environments (Debian: install python3-venv)" >&2; exit 1; }
	@touch $@

$(RUNTIME): pyproject.toml $(MADE)
	@echo "== installing cmir[torch]"
	@$(BIN)/python -c 'import torch, triton' 2>/dev/null || $(PIP) '$(TORCH)' 'triton>=3.6'
	@$(PIP) $(EDITABLE) -e '.[torch]'
	@touch $@

$(DEV): pyproject.toml $(RUNTIME)
	@echo "== installing cmir[dev]"
	@$(PIP) $(EDITABLE) -e '.[dev]'
	@touch $@

$(OLDEST): $(MADE)
	@echo "== installing triton 3.6.0 beside the other"
	@$(PIP) --no-deps --target $@.part triton==3.6.0 && rm -rf $@ && mv $@.part $@
