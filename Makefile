# `make demo` and `make test` are the two commands; `make help` lists the rest.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BENCH_READY := $(VENV)/.bench-ready
CLUSTER := $(PYTHON) hack/cluster
GENERATED := crds --reference docs/reference.md --chart charts/cronwright

.DEFAULT_GOAL := help
.PHONY: help bench check test simulate chaos demo down crds cluster lock format clean

help: ## Show this list
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements-dev.lock pyproject.toml
	@echo "==> installing Python packages into $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

demo: $(READY) ## Start a cluster and the operator, and watch schedules fire for a minute
	@$(BIN)/python hack/demo

test: $(READY) cluster-build ## Run every test: unit, and integration on a real API server
	@$(BIN)/python -m pytest

SEEDS ?= 1000
simulate: $(READY) ## Run SEEDS=1000 histories of the simulated cluster, or tell one with SEED=7
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) --first $(or $(FIRST),0)) $(if $(MUTANT),--mutant "$(MUTANT)")

chaos: $(READY) cluster-build ## Attack three replicas and their cluster for three minutes, then count (ARGS="--seed 1")
	@$(BIN)/python hack/chaos $(ARGS)

check: $(READY) ## Format, lint, types, import contract, CRD drift: under a minute
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m cronwright.api.crds --check $(GENERATED)

$(BENCH_READY): requirements-bench.lock $(READY)
	@echo "==> installing matplotlib into $(VENV), for the plots"
	@$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r requirements-bench.lock
	@touch $@

bench: $(BENCH_READY) cluster-build ## Measure it beside CronJobs: make bench, or make bench PART=burst ARGS="--sizes 500"
	@$(BIN)/python hack/bench $(or $(PART),all) $(ARGS)

crds: $(READY) ## Write the CRDs (crds/, the chart's, docs/reference.md) from the models
	@$(BIN)/python -m cronwright.api.crds $(GENERATED)

format: $(READY) ## Format and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

cluster: ## Start the embedded cluster (and build it, the first time)
	@$(CLUSTER) up

.PHONY: cluster-build
cluster-build:
	@$(CLUSTER) build

down: ## Stop the demo, its operator and its cluster
	@$(CLUSTER) down

lock: ## Write the lock files anew from pyproject.toml (needs uv)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header pyproject.toml -o requirements.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header pyproject.toml --group dev -o requirements-dev.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header -c requirements-dev.lock --group pyproject.toml:bench -o requirements-bench.lock
	echo 'hatchling>=1.27' | uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header - -o requirements-build.lock

clean: down ## Remove what make made here (not the cluster's cached parts)
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis
