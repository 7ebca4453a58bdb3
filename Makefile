# The two commands are `make demo` and `make test`; `make help` lists the others.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.ONESHELL:
.SHELLFLAGS := -euo pipefail -c

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO_ROOT := $(CURDIR)/data-demo

# Cached bytecode saves seconds at every start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo check test test-live soak bench cluster-demo container-demo helm-check dev lock release clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

$(STAMP): requirements.lock deploy/build.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else f"error: Python 3.11 to 3.13 is needed, {sys.executable} is {v[0]}.{v[1]}; set PYTHON=/path/to/python3.12")'
	echo "installing into $(VENV) ..."
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r deploy/build.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --require-hashes -r requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	touch $(STAMP)

demo: $(STAMP) ## run the whole graph on the sample world
	@$(BIN)/news-platform demo --root $(DEMO_ROOT)

check: $(STAMP) ## run lint, format and type checks, and build the docs
	@$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy --no-error-summary
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	NEWS_PLATFORM_SAMPLE=1 NEWS_PLATFORM_ROOT=$$(mktemp -d) $(BIN)/dg check defs >/dev/null 2>&1
	NEWS_PLATFORM_SAMPLE=1 NEWS_PLATFORM_ROOT=$$(mktemp -d) $(BIN)/dagster definitions validate >/dev/null 2>&1

PYTEST := env -u DAGSTER_HOME $(BIN)/python -m pytest

# The type checker runs beside the tests. Three workers on two cores: many tests wait for servers.
test: $(STAMP) ## run all checks, and the tests that start no daemon, cluster or browser
	@$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	($(BIN)/mypy --no-error-summary && NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet) & CHECKS=$$!
	$(PYTEST) -n 3 --dist loadfile -m 'not live and not soak'
	wait $$CHECKS

test-live: $(STAMP) ## run the tests that start a daemon, a cluster or a browser
	@$(PYTEST) -n 3 --dist loadfile -m 'live and not soak'

soak: $(STAMP) ## run the long fault tests, each once per commit, and write docs/soak.md
	@env -u DAGSTER_HOME $(BIN)/python -m news_platform_tests.soak $(PARTS)

bench: $(STAMP) ## run all benchmarks
	@$(BIN)/python -m benchmarks

cluster-demo: $(STAMP) ## run the graph on PostgreSQL, Redis, Celery and S3, all on this machine
	@$(BIN)/python -m deploy.cluster_demo

container-demo: $(STAMP) ## build the image and run a day on docker-compose.yaml, under podman
	@$(BIN)/python -m deploy.container_demo

helm-check: $(STAMP) ## render and validate the Helm values; CHART=FOLDER of Dagster's chart
	@$(BIN)/python -m deploy.helm_check $(CHART)

dev: $(STAMP) ## start the Dagster UI on 127.0.0.1:3000 and the explorer on :8000
	@$(if $(NEWS_PLATFORM_ROOT),,NEWS_PLATFORM_SAMPLE=1 NEWS_PLATFORM_ROOT=$(DEMO_ROOT)) \
		$(BIN)/news-platform dev --port $${PORT:-3000} --server-port $${SERVER_PORT:-8000}

lock: $(STAMP) ## update requirements.lock, and the image's part of it
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
		--no-header --no-annotate --all-extras pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-header --no-annotate --extra cluster --extra tokens -c requirements.lock pyproject.toml -o deploy/requirements.lock

	printf 'uv\nsetuptools\n' | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
		--no-header --no-annotate -c requirements.lock - -o deploy/build.lock

release: check ## build sdist, wheel, docs, a bill of materials and checksums into dist/
	@$(BIN)/python -m deploy.release

clean: ## remove what was built, but not data
	@rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
