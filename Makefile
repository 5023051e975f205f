# Every target does its own set-up. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export PATH := $(PATH):$(HOME)/.cargo/bin
export PYO3_PYTHON := $(CURDIR)/.venv/bin/python
bin := .venv/bin
seconds ?= 60
minutes ?= 60

.PHONY: help run test test-all lint format drawing docs pictures screens bench reproduce wheel sdist fuzz mutants soak firmware licences setup clean clean-venv

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: setup ## set everything up, run the quickstart and say where its report is
	@$(bin)/tcpsbed run scenarios/quickstart.toml

test: setup ## the tests that take seconds and pass on a busy machine (at most 10 minutes)
	@tools/test.sh

test-all: test ## those, then fuzz targets, long tests and tests that want a quiet machine
	@tools/test_rest.sh

lint: packages ## rustfmt, clippy, ruff, mypy, import arrows, citations
	@tools/lint.sh

format: packages ## format Rust and Python
	@cargo fmt --all
	@$(bin)/ruff check --fix --quiet . && $(bin)/ruff format --quiet .

drawing: packages ## draw ARCHITECTURE.md and tables of the documentation again from the code
	@$(bin)/python tools/check_arrows.py --write
	@$(bin)/python tools/tables.py --write

docs: packages ## the documentation site in target/site, which a browser opens as files; any warning fails
	@tools/site.sh

pictures: setup ## draw the pictures of the documentation again, from runs in virtual time
	@for script in pictures draw_robots draw_replays; do $(bin)/python tools/$$script.py; done

screens: setup ## take the pictures of live pages again, and the recording of the README (needs chromium, two quiet cores)
	@$(bin)/python tools/screens.py

# Wheels are built so, too.
bench: export CARGO_PROFILE_RELEASE_LTO = fat
bench: export CARGO_PROFILE_RELEASE_CODEGEN_UNITS = 1
bench: setup ## every benchmark, and the tables of docs/benchmarks.md (ARGS=--quick for a short one)
	@$(bin)/python benches/run.py $(ARGS)

reproduce: setup ## published experiments with their figures in reproduced/ (WORK=polachan2022-mininet for one, whole)
	@$(bin)/tcpsbed reproduce $(or $(WORK),all)

wheel: packages ## a wheel (manylinux_2_28) in dist/, installed and tried in empty virtual environments
	@tools/wheel.sh

sdist: packages ## a source distribution in dist/, built and tried in an empty virtual environment
	@tools/sdist.sh

fuzz: ## fuzz parsers of packets, devices and files, and every handle_input (seconds=60 each), with a kept corpus; tell what each has had
	@fuzz/run.sh $(seconds)

mutants: setup ## change the code one place at a time, and see whether a test fails (ROOM=transport NUMBER=20 SEED=1)
	@nice -n 19 $(bin)/python tools/mutants.py $(ROOM) --number $(or $(NUMBER),20) --seed $(or $(SEED),1)

soak: setup ## an hour on sockets (minutes=60) with memory, files and clocks watched, and 100,000 random schedules of faults
	@PROPTEST_CASES=100000 cargo test --quiet --release -p tcps-run --test virtual_time faults
	@$(bin)/python tools/soak.py $(minutes)

firmware: ## firmware of boards in target/firmware, for this machine and for a Cortex-M3 (QEMU)
	@$(MAKE) -s -C firmware host OUT=$(CURDIR)/target/firmware
	@command -v arm-none-eabi-gcc >/dev/null || { echo "firmware for a Cortex-M3 needs: apt-get install gcc-arm-none-eabi (and qemu-system-arm to run it)" >&2; exit 1; }
	@$(MAKE) -s -C firmware qemu OUT=$(CURDIR)/target/firmware

licences: packages ## licences of all crates, Python packages and bundled libraries
	@$(bin)/python tools/licences.py

setup: ## only the set-up
	@tools/setup.sh

.PHONY: packages
packages:
	@tools/setup.sh packages

clean: ## remove what was built and run, but keep .venv
	@rm -rf target dist build bench-out .mypy_cache .ruff_cache .pytest_cache python/tcpsbed/_tcps*.so
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

clean-venv: ## remove .venv
	@rm -rf .venv
