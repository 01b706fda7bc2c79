PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
LOCK := $(BIN)/uv pip compile --no-config --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet

# The tests start hundreds of processes, and each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help sandbox test tests quick provision check lint types docs screenshots bench soak simulate fuzz smoke chaos lock images clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

sandbox: .venv/installed ## Install and run everything here, with a chat page in the browser (ARGS=--fresh, --postgres …)
	@$(BIN)/genlock sandbox $(ARGS)

# The types are checked by one process beside the tests, not before them: it takes one of two cores for most of a minute.
test: provision lint ## Install, check and run all tests (ARGS="-k name" picks some)
	@$(MAKE) --no-print-directory --jobs=2 types tests

# Eight processes for two cores: at any moment several wait for a service, a browser or a time limit.
tests: .venv/installed
	$(BIN)/pytest -n 8 --dist worksteal $(ARGS)

quick: .venv/installed ## Run the tests of single parts, not of the running bot, API or dashboard: the inner loop
	$(BIN)/pytest -n 6 --dist worksteal -m "not browser and not postgres and not process and not slow" $(ARGS)

provision: .venv/installed ## Bring the programs that the tests run: a browser, PgBouncer, PostgreSQL
	$(BIN)/python -m tests.provision

check: lint types ## Lint, formatting, types, import rules, words, docs

types: .venv/installed
	$(BIN)/mypy

lint: .venv/installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tests.style.check_words
	$(BIN)/python -m tests.style.check_providers
	$(BIN)/python -m docs.generate --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site
	$(BIN)/python -m genlock.i18n.check

docs: .venv/installed ## Write the generated parts of the docs and build the site in build/site
	$(BIN)/python -m docs.generate
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site
	@echo "open build/site/index.html, or run: $(BIN)/mkdocs serve"

screenshots: provision ## Take the pictures of the docs from the running sandbox
	$(BIN)/python -m docs.screenshots

bench: .venv/installed ## Measure the engine against the plain protocol, and the running service
	$(BIN)/genlock bench $(ARGS)

simulate: .venv/installed ## Crash the engine at every point, from many seeds
	$(BIN)/genlock simulate $(ARGS)

# The time as the first seed: no two nights run the same ones.
soak: provision ## The nightly run: seeds and random examples never tried before (SEEDS=20000), then a load (ARGS="--minutes 60")
	$(BIN)/genlock simulate --seeds $(or $(SEEDS),20000) --first-seed $$(date +%s)
	$(BIN)/pytest -n 2 --dist worksteal -m random --first-seed $$(date +%s)
	$(BIN)/genlock soak $(ARGS)

fuzz: .venv/installed ## Give the parsers inputs for ten minutes, guided by the lines they reach (ARGS="--minutes 1 --only media")
	$(BIN)/python -m tests.fuzz $(ARGS)

smoke: .venv/installed ## One order through the product and the simulators, in nine phases
	$(BIN)/genlock smoke $(ARGS)

chaos: .venv/installed ## Kill, pause and cut off real processes while users order
	$(BIN)/genlock chaos $(if $(ARGS),$(ARGS),--jobs 100 --instances 3 --store postgres --kill-every 2 --restart-db)

lock: .venv/installed ## Pin what pyproject.toml asks for (ARGS=--upgrade takes the newest)
	$(LOCK) $(ARGS) --output-file requirements/dev.lock --extra sandbox --group dev pyproject.toml
	$(LOCK) $(ARGS) --output-file requirements/run.lock --constraint requirements/dev.lock pyproject.toml
	$(LOCK) --output-file requirements/build.lock --constraint requirements/dev.lock --group build

images: ## Look up the digests of the base images, as lines for .env (needs docker and its registry)
	@for image in PYTHON_IMAGE=python:3.12-slim POSTGRES_IMAGE=postgres:17-alpine; do \
		digest=$$(docker buildx imagetools inspect "$${image#*=}" --format '{{.Manifest.Digest}}') || exit 1; \
		echo "$$image@$$digest"; \
	done

clean: ## Remove the environment and all caches
	rm -rf .venv .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist

# Recreated when the lock changes, so that no package outside the lock remains.
.venv/locked: requirements/dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "genlock needs Python 3.11 or newer, and '$(PYTHON)' is not: try 'make PYTHON=python3.12 …'" >&2; exit 1; }
	$(PYTHON) -m venv --clear .venv
	@echo "Installing the packages into .venv: this takes about a minute."
	@$(PIP) install --quiet --require-hashes --only-binary :all: --requirement requirements/dev.lock || { \
		echo "The packages could not be installed, for the reason above. 'No matching distribution' mostly means that" \
			"the network is down: then connect, and run the command again." >&2; exit 1; }
	@touch $@

.venv/installed: .venv/locked pyproject.toml
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@
