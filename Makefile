# Two commands for a newcomer: `make run` and `make test`. Each sets itself up.
PYTHON ?= python3
SONAR_PORT ?= 8000
VENV := .venv
BIN := $(VENV)/bin
export SONAR_PORT
ifeq ($(origin PORT),command line)
$(error PORT is called SONAR_PORT now)
endif

.PHONY: run test test-all .lanes bench accuracy replay fuzz chaos containers screenshots lint picture format lock clean help

help: ## List the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

run: $(VENV)/.run ## Start Sonar with its sandbox on SONAR_PORT (SONAR_REGISTRY=file.yaml for a real grid)
	@exec $(BIN)/python -m sonar.sandbox

test: $(VENV)/.test ## Check style and types, and run all tests except the long ones (seven to ten minutes on two cores)
	@$(MAKE) --no-print-directory .lanes CHOSEN='-m "not long"'

test-all: $(VENV)/.test ## Run all checks of CI: style, types and every test (about 50 minutes on two cores)
	@HYPOTHESIS_PROFILE=thorough $(MAKE) --no-print-directory .lanes

# Each lane is a pytest with a PostgreSQL and a Redis of its own, and a budget (tests/budget.py).
# Those of the first list wait for servers and slow networks most of their time, and have clocks to
# keep: they run first, and the others give way, those that go on longest first, and browsers apart.
# Three of each at a time keep two cores busy; more would only slow each other down.
# What needs programs that CI still installs waits for INSTALLING, the process that does so (.ci/run).
WAITING := .test-storage .test-sandbox .test-lab .test-programs .test-engines
COMPUTING := .test-matrix .test-matrix-m .test-browser-n .test-rest .test-browser-f .test-sonar \
	.test-browser .test-asked .test-types
UNTIL_THERE := @$(if $(INSTALLING),tail --pid=$(INSTALLING) -f /dev/null)
ELSEWHERE := tests/storage tests/browser tests/api tests/matrix tests/sonar tests/sandbox \
	tests/benchmarks tests/lab tests/programs tests/engines
# Whole Sonars, which lose their parts one by one: a lane of servers has time for them.
WHOLE := $(addprefix tests/storage/test_,health_live.py readers.py survival.py)
ASKED := tests/matrix/test_api*.py tests/matrix/test_*page.py
# The second half of the longest lane, by the first letter: as one, it went on when others were done.
FROM_M := $(filter-out $(wildcard $(ASKED)),$(wildcard tests/matrix/test_[m-z]*.py))
# So are those in a browser, which takes as much again in processes of its own.
FROM_F := $(wildcard tests/browser/test_[f-m]*.py)
FROM_N := $(wildcard tests/browser/test_[n-z]*.py)
# An old make lets their lines mix.
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
LANES := --no-print-directory -k $(SYNC)

.PHONY: .waiting .computing $(WAITING) $(COMPUTING)

# Each lane adds why it skipped tests; the last line says what to install for them.
.lanes: export SKIPPED := $(CURDIR)/.pytest_cache/skipped
.lanes:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	@mkdir -p .pytest_cache && rm -f "$$SKIPPED"
	@echo "Types and tests run side by side; each lane reports at its end."
	@code=0; $(MAKE) --no-print-directory -k -j2 .waiting .computing || code=$$?; \
		$(BIN)/python -m tests.needs "$$SKIPPED"; exit $$code

# Without the flags of the make above, whose two jobs they would share.
.waiting:
	$(UNTIL_THERE)
	@MAKEFLAGS= $(MAKE) $(LANES) -j3 $(WAITING)

.computing:
	@MAKEFLAGS= nice $(MAKE) $(LANES) -j3 $(COMPUTING)

.test-storage:
	$(BIN)/python -m pytest --lane=storage $(CHOSEN) tests/storage $(addprefix --ignore=,$(WHOLE))

# Programs that move files, with their servers; and whole Sonars.
.test-programs:
	$(BIN)/python -m pytest --lane=programs $(CHOSEN) tests/programs $(WHOLE)

.test-browser:
	$(UNTIL_THERE)
	$(BIN)/python -m pytest --lane=browser $(CHOSEN) tests/browser tests/api $(addprefix --ignore=,$(FROM_F) $(FROM_N))

.test-browser-f:
	$(UNTIL_THERE)
	$(BIN)/python -m pytest --lane=browser-f $(CHOSEN) $(FROM_F)

.test-browser-n:
	$(UNTIL_THERE)
	$(BIN)/python -m pytest --lane=browser-n $(CHOSEN) $(FROM_N)

.test-matrix:
	$(BIN)/python -m pytest --lane=matrix $(CHOSEN) tests/matrix $(patsubst %,--ignore-glob='%',$(ASKED) $(FROM_M))

.test-matrix-m:
	$(BIN)/python -m pytest --lane=matrix-m $(CHOSEN) $(FROM_M)

# The API and the pages of it, as they answer.
.test-asked:
	$(BIN)/python -m pytest --lane=asked $(CHOSEN) $(ASKED)

.test-sonar:
	$(UNTIL_THERE)
	$(BIN)/python -m pytest --lane=sonar $(CHOSEN) tests/sonar

# Whatever is in no other lane: a new folder is tested without a change here.
.test-rest:
	$(UNTIL_THERE)
	$(BIN)/python -m pytest --lane=rest $(CHOSEN) tests $(addprefix --ignore=,$(ELSEWHERE))

.test-sandbox:
	$(BIN)/python -m pytest --lane=sandbox $(CHOSEN) tests/sandbox tests/benchmarks

# Slow networks: it waits for nearly all of its time.
.test-lab:
	$(BIN)/python -m pytest --lane=lab $(CHOSEN) tests/lab

# PgBouncer, RabbitMQ, Sentinel and replicas, real ones.
.test-engines:
	$(BIN)/python -m pytest --lane=engines $(CHOSEN) tests/engines

# What mypy would keep for the next time, CI throws away.
.test-types:
	$(BIN)/mypy $(if $(CI),--cache-dir=/dev/null)

bench: $(VENV)/.test ## Benchmark the storage of results and its alternatives (SCALE=small|default|double|tenfold|large, ONLY=1,2)
	$(BIN)/python -m tests.benchmarks

# A test that goes on for minutes is taken for one that hangs (.pytest.ini).
AT_LENGTH := -o faulthandler_timeout=0

# A process for each core: numpy's own threads would only be in each other's way.
accuracy: $(VENV)/.test ## Measure how often causes and conditions are right, and write it into the docs (an hour)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.accuracy
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.accuracy.judged

replay: $(VENV)/.test ## Replay a simulated year of faults through the real code (SEED=1; five minutes)
	REPLAY=1 SEED=$(or $(SEED),1) $(BIN)/python -m pytest $(AT_LENGTH) -q -s tests/accuracy/test_replay.py

# Two accounts at a time, each with a database of its own; a line of each as it goes on, its report
# at its end.
FUZZ := FUZZ_REQUESTS=$(or $(REQUESTS),20000) $(BIN)/python -m pytest $(AT_LENGTH) -q --show-capture=no
ACCOUNTS := anonymous reader site-admin administrator

fuzz: $(VENV)/.test ## Send the API REQUESTS=20000 generated requests as each account (FUZZ_SEED=1)
	@$(MAKE) --no-print-directory -k -j2 $(addprefix .fuzz-,$(ACCOUNTS)) .fuzz-pages

.fuzz-pages:
	@$(FUZZ) tests/test_odd_requests.py

.fuzz-%:
	@$(FUZZ) -s tests/api/test_fuzz.py -k $*

screenshots: $(VENV)/.test ## Take the screenshots of docs/pages.md from a running `make run`
	$(BIN)/python -m tests.screenshots

lint: $(VENV)/.test ## Check style, spelling and types only
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/codespell && $(BIN)/mypy

picture: $(VENV)/.test ## Draw the packages of sonar/ and matrix/ into docs/architecture.md, from their imports
	$(BIN)/python -m tests.imports

format: $(VENV)/.test ## Fix style errors that can be fixed automatically
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .

# As root, with docker or docker.io, Compose and debootstrap. What it makes of Debian's packages
# stays in SONAR_CONTAINERS for the next run.
chaos: $(VENV)/.test ## Inject faults of every kind into a complete Sonar (PROBES=5000 SEED=2011; 10 to 40 minutes)
	$(BIN)/python -m tests.storage.fault_run --probes $(or $(PROBES),5000) --seed $(or $(SEED),2011)

containers: $(VENV)/.test ## Test docker-compose.yml on a real container engine with real storage (as root, 15 minutes)
	$(BIN)/python -m tests.containers

# Keeps each version that still fits; UPGRADE=1 takes the newest of what the libraries bring along.
# One lock for each Python and machine: markers say what is for which. No registry's name goes in.
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version=3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --annotation-style=line \
	--custom-compile-command="make lock" $(if $(UPGRADE),--upgrade)

lock: $(VENV)/.test ## Write the requirements files with hashes from .requirements*.in (UPGRADE=1: newer versions)
	$(LOCK) .requirements.in --output-file=requirements.txt
	$(LOCK) .requirements-dev.in --output-file=requirements-dev.txt

clean: ## Remove the virtual environment and caches; SONAR_HOME is kept
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Goes before what takes long and says nothing: a dot every two seconds.
AND_SAY := (while sleep 2 && kill -0 $$$$ 2>/dev/null; do printf .; done) & dots=$$!; trap "kill $$dots; echo" EXIT;

$(VENV)/bin/python:
	@command -v $(PYTHON) >/dev/null || { echo "Sonar needs Python 3.11 or newer: $(PYTHON) is not on the PATH."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Sonar needs Python 3.11 or newer: set PYTHON=python3.11, say."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "Sonar needs Python's venv module: on Debian, install the package python3-venv."; exit 1; }
	@$(AND_SAY) $(PYTHON) -m venv $(VENV)

# Compiled by all cores at once: by pip, on one, it takes a third of the time of setting up. The
# libraries' own tests, which nobody imports, are left out.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes
COMPILE := $(BIN)/python -m compileall -q -j0 -x '/tests/' $(VENV)/lib

$(VENV)/.run: requirements.txt | $(VENV)/bin/python
	@echo "Setting up Python packages in $(VENV) (once, about a minute) ..."
	@$(AND_SAY) $(INSTALL) -r requirements.txt && $(COMPILE)
	@touch $@

$(VENV)/.test: requirements.txt requirements-dev.txt | $(VENV)/bin/python
	@echo "Setting up Python packages for the tests in $(VENV) (once, about a minute) ..."
	@$(AND_SAY) $(INSTALL) -r requirements-dev.txt && $(COMPILE)
	@touch $@
