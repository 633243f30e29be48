# Every command of this project. Each sets up what it needs by itself; a second run does no set-up work again.
.DEFAULT_GOAL := help
.PHONY: help setup demo demo-dr demo-fleet serve test soak lint docs bench sandbox-up sandbox-down clean

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PYTHONDONTWRITEBYTECODE := 1
DEV := ansible_collections.openfleet.clusters.extensions.dev

help: ## Show this list
	@echo "openfleet.clusters: from a tenant's order to a running, watched, recoverable cluster"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Make the virtual environment (every other command does this first)
	@[ -n "$(PYTHON)" ] || { echo "✘ Python 3.11 or newer is needed and was not found: install it, or name it with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -m extensions.dev.setup

demo: setup ## Show the main job on a hub of this machine, from nothing to a running cluster and back (PROVIDER=capi: by Cluster API)
	@python -m $(DEV).demo $(PROVIDER)

demo-dr: setup ## Show disaster recovery on two clusters of this machine: one is killed, its workload fails over and is relocated back
	@python -m $(DEV).demo_dr

demo-fleet: setup ## Show a fleet on this machine: two tenants order clusters from one API; one of two hubs is drained, the other is killed
	@python -m $(DEV).demo_fleet

serve: setup ## Reconcile the orders on a hub of this machine, with a page for them, until Ctrl-C (PROVIDER=capi: Cluster API too; WEBHOOK_PORT=5000)
	@python -m $(DEV).serve $(PROVIDER) $(if $(WEBHOOK_PORT),--port=$(WEBHOOK_PORT))

# Four at a time on two cores: the tests of Cluster API wait more than they compute.
test: setup ## Run every test
	@openfleet-sandbox build --s3 --capi --flux --gitea --apis
	@python -m pytest --numprocesses=4 --dist=worksteal --durations=10 --durations-min=1

soak: setup ## Repeat the random tests for MINUTES (60), with FACTOR (5) times their rounds, and measure an engine meanwhile
	@openfleet-sandbox build --s3 --capi --flux --gitea --apis
	@python -m $(DEV).soak $(if $(MINUTES),--minutes=$(MINUTES)) $(if $(FACTOR),--factor=$(FACTOR))

lint: setup ## Run every gate: Ansible, Python, YAML, rulebooks, documentation, Go
	@python -m $(DEV).lint

docs: setup ## Build the HTML pages: guides, and the reference of modules, plugins and roles
	@python -m $(DEV).docsite

bench: setup ## Measure, side by side in one run, print tables, and fail where a goal is missed (ROWS="one_order burst": only these)
	@python -m $(DEV).bench $(ROWS)

sandbox-up: setup ## Start the sandbox hub and leave it running
	@openfleet-sandbox up

sandbox-down: setup ## Stop the sandbox: no process, no port is left
	@openfleet-sandbox down

clean: ## Stop the sandbox and remove all that was made here (compiled programs stay in the user's cache)
	@if [ -x .venv/bin/openfleet-sandbox ]; then .venv/bin/openfleet-sandbox down; fi
	@rm -rf .venv .venv.lock .sandbox .sandbox-dr .sandbox-fleet .docs .mypy_cache .ruff_cache .pytest_cache .ansible .hypothesis tests/output openfleet-clusters-*.tar.gz
