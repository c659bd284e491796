# The commands of the project. Each first installs what it needs into .venv. ARGS="…" is passed on.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Let Python write compiled files: otherwise each of the many processes that the tests start compiles devlet again.
unexport PYTHONDONTWRITEBYTECODE

PY := .venv/bin/python
PYTEST := $(PY) -m pytest -q -p tools.test_times -p tools.compile_once
# Tests wait for processes and sockets, so one and a half workers per core keep the cores busy.
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n + (n + 1) / 2)))
# Tests that start programs, drivers and whole control planes wait far longer than they compute, so they get more workers.
WAITING ?= $(shell n=$$((3 * $$(nproc 2>/dev/null || echo 2))); echo $$((n < 12 ? n : 12)))
# The first interpreter on the PATH that is new enough. `make PYTHON=…` selects a different one.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)

.PHONY: help
help: ## show this help
	@sed -n 's/^\([a-z-]*\):.*## /\1#/p' Makefile | awk -F'#' '{ printf "make %-11s %s\n", $$1, $$2 }'

.PHONY: demo
demo: .venv/.run ## run a node with two drivers, pods and claims on this machine, live
	@.venv/bin/devlet demo $(ARGS)

.PHONY: test
test: .venv/.dev ## run the tests, except those that take long or need the Go programs
	@$(PYTEST) -n $(WORKERS) --dist worksteal -m "not peers and not skew and not long and not fuzz and not soak" $(ARGS)

.PHONY: check
check: check-types check-format check-lint check-imports check-tests check-runs check-lock check-wire ## check format, lint, types, layers, test files and locks

.PHONY: check-format check-lint check-types check-imports check-tests check-runs check-lock check-wire
check-format: .venv/.dev
	@$(PY) -m ruff format --check --quiet .
check-lint: .venv/.dev
	@$(PY) -m ruff check --quiet .
check-types: .venv/.dev
	@$(PY) -m mypy
check-imports: .venv/.dev
	@.venv/bin/lint-imports --no-logo
check-tests: .venv/.dev
	@$(PY) -m tools.check_tests
check-runs: .venv/.dev
	@$(PY) -m tools.check_runs
check-lock: .venv/.dev
	@$(PY) -m tools.check_lock
check-wire: .venv/.dev
	@$(PY) -m tools.make_wire --check

.PHONY: format
format: .venv/.dev ## format the code as `make check` requires
	@$(PY) -m ruff format --quiet .
	@$(PY) -m ruff check --quiet --fix .

.PHONY: wire
wire: .venv/.dev ## generate the code of the gRPC messages from their .proto files
	@$(PY) -m tools.make_wire

.PHONY: peers
peers: .venv/.dev ## build the Go programs that some tests use
	@$(PY) tools/peers.py

.PHONY: test-peers
test-peers: .venv/.dev peers ## run the tests against the Go programs
	@$(PYTEST) -n $(WAITING) --dist worksteal -m peers $(ARGS)

.PHONY: test-crash
test-crash: .venv/.dev ## kill the daemon at random points, DEVLET_CRASH_ROUNDS times (10), and run the tests that take long
	@DEVLET_CRASH_ROUNDS=$${DEVLET_CRASH_ROUNDS:-10} $(PYTEST) -n $(WAITING) --dist worksteal \
		--ignore=tests/peers -m "(crash or long) and not peers" $(ARGS)

.PHONY: fuzz
fuzz: .venv/.dev ## send random requests to two daemons for DEVLET_FUZZ_SECONDS (60); DEVLET_FUZZ_SEED repeats a run
	@$(PYTEST) -n 2 tests/fuzz $(ARGS)

.PHONY: soak soak-crash soak-sanity soak-chaos
soak: .venv/.dev ## run what takes too long for every change: 200 crash rounds, all sanity checks, ten minutes of chaos
	@$(PY) -m tools.ci --plan=.ci/soak.toml $(ARGS)
soak-crash: .venv/.dev
	@DEVLET_CRASH_ROUNDS=$${DEVLET_CRASH_ROUNDS:-200} $(PYTEST) -n $(WAITING) --dist worksteal \
		--ignore=tests/peers -m crash $(ARGS)
soak-sanity: .venv/.dev
	@DEVLET_SANITY=all $(PYTEST) -n $(WAITING) --dist worksteal -m "soak or long" \
		tests/contract/test_examples_pass_sanity.py tests/unit/sanity $(ARGS)
soak-chaos: .venv/.dev peers
	@DEVLET_SOAK_SECONDS=$${DEVLET_SOAK_SECONDS:-600} $(PYTEST) -s tests/peers/test_soak.py $(ARGS)

.PHONY: skew skew-release
skew: .venv/.dev ## build Kubernetes 1.34, 1.35 and 1.36, and let a node join their control planes
	@$(PY) -m tools.ci --plan=.ci/skew.toml $(ARGS)
skew-release: .venv/.dev
	@nice -n 19 $(PY) tools/peers.py etcd kubernetes $(filter-out kubernetes-1.36,kubernetes-$(RELEASE))
	@DEVLET_SKEW=$(RELEASE) DEVLET_PEERS=required $(PYTEST) -m skew tests/peers/test_skew.py $(ARGS)

.PHONY: bench
bench: .venv/.dev ## run the benchmarks; ARGS=--quick runs a short version
	@set -e; for script in $(sort $(filter-out bench/_%,$(wildcard bench/*.py))); do \
		printf '\n== %s\n' "$$script"; $(PY) "$$script" $(ARGS); done

.PHONY: lock
lock: .venv/.dev ## update both lock files from pyproject.toml; ARGS=--upgrade takes newer versions
	@test -x .venv/bin/uv || $(PY) -m pip install --quiet --disable-pip-version-check uv
	@$(COMPILE) --group dev --output-file requirements-dev.lock $(ARGS) pyproject.toml >/dev/null
	@$(COMPILE) --group build --output-file requirements.lock --constraint requirements-dev.lock $(ARGS) pyproject.toml >/dev/null

COMPILE := .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url

.PHONY: clean
clean: ## remove everything that these commands created: .venv, .cache and the caches of tools
	@! test -d .cache || chmod -R u+w .cache # Go's module cache is read-only
	@rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .benchmarks build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.run: requirements.lock pyproject.toml tools/bootstrap.py tools/pip_sources.py
	@$(call bootstrap,run)
.venv/.dev: requirements-dev.lock pyproject.toml tools/bootstrap.py tools/pip_sources.py
	@$(call bootstrap,dev)

define bootstrap
python="$(PYTHON)"; test -n "$$python" || { \
	echo "devlet needs Python 3.11 or newer; python3 here is: $$(python3 -V 2>&1)" >&2; exit 1; }; \
	"$$python" -m tools.bootstrap $(1)
endef
