# `make help` lists the targets. Everything is installed into .venv, from locks with hashes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime-installed
DEV := $(VENV)/.dev-installed
# The tools for static/ are npm packages; node and npm come with the development requirements.
BROWSER := $(VENV)/browser/.installed
BIOME := $(VENV)/browser/node_modules/.bin/biome
# What covers the pure code: everything but the tests that run programs against a server.
PURE := tests/uamp tests/upp tests/uap $(patsubst %,--ignore=tests/uamp/client/test_%.py,client command_line guides javascript lost_connections terminal)
# What `make test` hands to pytest, for example: make test ARGS="-k resume".
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help install run test test-all lint lint-types lint-rules lint-coverage check fmt bench chaos odd-fields money-property interop screens docs grpc words wheels sbom vendor pages lock

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

run: $(RUNTIME) ## Start the server with its demo (PORT, DATA_DIR, DATABASE_URL, REDIS_URL)
	@exec $(BIN)/python manage.py up --demo

test: $(DEV) ## Run the tests except the long ones, on SQLite and on PostgreSQL if there is one
	@$(BIN)/python -m tests.run $(ARGS)

test-all: $(DEV) ## Run all tests on both databases (tests/tiers.py says which are long)
	@$(BIN)/python -m tests.run --all $(ARGS)

lint: lint-rules lint-types lint-coverage ## Check format, lint, types, imports, migrations, settings, coverage of the pure code

lint-types: $(DEV) $(BROWSER)
	$(BIN)/mypy .
	PATH="$(CURDIR)/$(BIN):$$PATH" $(VENV)/browser/node_modules/.bin/tsc

lint-rules: $(DEV) $(BROWSER)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIOME) check --error-on-warnings
	PATH="$(CURDIR)/$(BIN):$$PATH" requirements/browser/vendor --check
	$(BIN)/node requirements/browser/pages.mjs --check
	$(BIN)/lint-imports --config importlinter.toml
	$(BIN)/python manage.py makemigrations --check --dry-run
	HTTPS=1 ALLOWED_HOSTS=chat.example.org SECRET_KEY=$$($(BIN)/python -c 'import secrets; print(secrets.token_urlsafe(50))') \
		UAMP_ISSUER=https://chat.example.org UAMP_TRUSTED_PROXIES=10.0.0.0/8 \
		$(BIN)/python manage.py check --deploy --fail-level WARNING

lint-coverage: $(DEV)
	$(BIN)/pytest -q $(PURE) --cov --cov-report=term

check: lint test ## Everything that must hold before a change goes in

fmt: $(DEV) $(BROWSER) ## Format the code and apply the safe fixes
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIOME) check --write

bench: $(DEV) ## Run the benchmarks
	@$(BIN)/python -m benchmarks $(ARGS)

chaos: $(DEV) ## Kill, cut and repeat around the ledger for ten minutes on each database
	$(BIN)/python -m tests.faults.ledger_chaos --database sqlite $(ARGS)
	$(BIN)/python -m tests.faults.ledger_chaos --database postgres $(ARGS)

odd-fields: $(DEV) ## Send odd numbers and choices in every field of every transport, for long
	ODD_EXAMPLES=2000 $(BIN)/pytest -q --timeout=3600 tests/faults/test_odd_fields.py $(ARGS)
	GATEWAY_EXAMPLES=2000 $(BIN)/pytest -q --timeout=3600 tests/gateway_app/test_fuzz_http.py tests/gateway_app/test_fuzz_sockets.py $(ARGS)

money-property: $(DEV) ## Draw 10,000 paid turns and endings, and who agreed to pay for each, on each database
	@MONEY_EXAMPLES=10000 DELIVERY_EXAMPLES=10000 $(BIN)/python -m tests.run \
		tests/journeys/test_money_property.py tests/sessions_app/billing/test_delivery_property.py $(ARGS)

interop: $(DEV) ## Install official clients of other protocols, and run them against the server
	@$(BIN)/python -m tests.interop.installation
	INTEROP=1 REQUIRE_SERVICES=1 $(BIN)/pytest -q tests/interop $(ARGS)

screens: $(DEV) ## Write a picture of every screen, and a contact sheet, into var/screens
	$(BIN)/python -m tests.screens $(ARGS)

docs: $(DEV) ## Write docs/protocol from the types, the picture from the import contracts, and the pages of requirements
	$(BIN)/python -m uamp.documents.reference docs/protocol
	$(BIN)/python -m docs.picture
	$(BIN)/python -m docs.requirements

grpc: $(DEV) ## Generate the code of the gRPC binding from its proto
	$(BIN)/python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. --grpc_python_out=. federation_app/rpc/agent.proto

words: $(DEV) ## Write the texts that are marked for translation into locale/
	@$(BIN)/python -m docs.words

wheels: $(DEV) ## Build the wheels of the server and its libraries into dist/, and their bill of materials
	@for project in packaging/uamp packaging/upp packaging/uap .; do \
		$(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w dist "./$$project" || exit 1; \
	done
	@$(BIN)/python packaging/bill_of_materials.py dist/uamp-server.cdx.json; ls dist

sbom: $(DEV) ## Write the software bill of materials (CycloneDX) of the wheel and the image
	@mkdir -p dist && $(BIN)/python packaging/bill_of_materials.py dist/uamp-server.cdx.json

vendor: $(BROWSER) ## Bundle the libraries of the pages into static/vendor
	PATH="$(CURDIR)/$(BIN):$$PATH" requirements/browser/vendor

pages: $(BROWSER) ## Bundle the chat page into static/dist
	$(BIN)/node requirements/browser/pages.mjs

install: $(DEV) ## Install everything, also what tests and checks need

lock: $(DEV) ## Resolve the requirements anew into the lock files
	cd requirements && for name in bootstrap runtime heic peers s3 stripe dev build interop/openai interop/anthropic interop/frameworks interop/litellm interop/a2a interop/a2a-03 interop/a2a-server interop/remote-servers interop/litellm-server interop/ag-ui interop/acp interop/realtime interop/webagents ../benchmarks/reference/requirements; do \
		../$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --upgrade \
		--no-emit-index-url --no-emit-find-links --no-header -q $$name.in -o $$name.txt || exit 1; \
	done
	cd requirements/browser && PATH="$(CURDIR)/$(BIN):$$PATH" npm update --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved --no-audit --no-fund

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed, for example: make PYTHON=python3.12 run"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "Python's venv module is needed (Debian: python3-venv)"; exit 1; }

$(RUNTIME): requirements/runtime.txt requirements/bootstrap.txt | $(BIN)/python
	@echo "Installing what the server needs ..."
	@requirements/install requirements/runtime.txt && touch $@

$(DEV): requirements/dev.txt requirements/bootstrap.txt | $(BIN)/python
	@echo "Installing what the server and its tests need ..."
	@requirements/install requirements/dev.txt && touch $@ $(RUNTIME)

$(BROWSER): requirements/browser/package-lock.json $(DEV)
	@echo "Installing what checks the pages ..."
	@mkdir -p $(VENV)/browser && cp requirements/browser/package.json requirements/browser/package-lock.json $(VENV)/browser/
	@cd $(VENV)/browser && PATH="$(CURDIR)/$(BIN):$$PATH" npm ci --fetch-timeout=30000 --fetch-retries=2 --ignore-scripts --no-audit --no-fund --silent && touch .installed
