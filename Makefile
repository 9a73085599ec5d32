# make demo, make test, make check: what most people need. CONTRIBUTING.md explains the rest.
#
#   make install              .venv with the locked versions: some minutes the first time
#   make demo INPUT=folder    the main job on a folder of Markdown or reStructuredText
#   make demo-kafka           the same on Apache Kafka, over three workers, one of which is killed
#   make test ARGS='-k word'  arguments go to pytest
#   make simulate SEEDS=7,8   schedules of the simulation by their seeds

SHELL := /bin/sh
VENV ?= .venv
BIN := $(VENV)/bin
INPUT ?= .
TASKS ?= 1000
ARGS ?=
SEEDS ?=
UPGRADE ?=

.DEFAULT_GOAL := help
.PHONY: help install lightagent demo demo-kafka test test-all simulate check lint types imports wheel bench lock clean

help:
	@sed -n 's/^# \{0,1\}//p;/^SHELL/q' Makefile

install: $(VENV)/installed

$(VENV)/installed: requirements/dev.txt pyproject.toml
	@VENV=$(VENV) PYTHON='$(PYTHON)' sh requirements/venv.sh
	@echo 'installing the locked versions into $(VENV): one to five minutes the first time, and pip says nothing meanwhile'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# LightAgent needs another openai than the rest: the tests of its adapter have an environment of their own.
lightagent: .venv-lightagent/installed

.venv-lightagent/installed: requirements/lightagent.txt
	@VENV=.venv-lightagent PYTHON='$(PYTHON)' sh requirements/venv.sh
	@echo 'installing LightAgent into .venv-lightagent: a minute or two the first time, and pip says nothing meanwhile'
	.venv-lightagent/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

demo: install
	$(BIN)/dagbok run examples/docs_audit.py --input '$(INPUT)' $(ARGS)

demo-kafka: install
	$(BIN)/python bench/demo_kafka.py --input '$(INPUT)' $(ARGS)

test: install lightagent
	$(BIN)/python -m pytest $(ARGS)

test-all: install lightagent
	DAGBOK_TEST_SCALE=full $(BIN)/python -m pytest $(ARGS)

simulate: install
	DAGBOK_SEEDS=$(SEEDS) $(BIN)/python -m pytest tests/simulation/test_schedules.py $(ARGS)

check: lint types imports wheel

lint: install
	$(BIN)/ruff check

types: install
	$(BIN)/mypy

imports: install
	$(BIN)/lint-imports --no-logo

wheel: install
	sh requirements/try_wheel.sh $(BIN)/python

bench: install
	$(BIN)/python bench/fanout.py --tasks $(TASKS) $(ARGS)

# Keeps the pinned versions that still fit; `make lock UPGRADE=--upgrade` takes the newest.
# --universal: one file for every Python from 3.11 on and every system.
DEPLOYED = --extra kafka --extra otel --extra postgres --extra s3
EXTRAS = $(DEPLOYED) --extra mcp --extra openai-agents --extra pydantic-ai --extra yaml
LOCK = .venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url --no-emit-find-links $(UPGRADE)
COMPILE = $(LOCK) pyproject.toml
lock:
	@VENV=.venv-lock PYTHON='$(PYTHON)' sh requirements/venv.sh
	.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.7'
	$(COMPILE) --output-file requirements/runtime.txt
	$(COMPILE) --group dev $(EXTRAS) --constraint requirements/runtime.txt --output-file requirements/dev.txt
	$(COMPILE) $(DEPLOYED) --constraint requirements/dev.txt --output-file requirements/deploy.txt
	$(LOCK) --group image --constraint requirements/dev.txt --output-file requirements/image.txt
	$(COMPILE) --extra lightagent --override requirements/lightagent-without.txt \
		--constraint requirements/runtime.txt --output-file requirements/lightagent.txt

clean:
	rm -rf $(VENV) .venv-* build dist dagbok.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
