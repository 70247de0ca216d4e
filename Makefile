# make demo | test | soak | mutate | check | board | docs | adapters | dist | workflows | nightly | bench | bench-quick:
# each makes .venv (the demo .demo) first, with the package, torch for CPU and tools, if it is not there or pyproject.toml
# has changed. TORCH_INDEX=URL takes an index that holds CPU builds of torch, for
# machines whose default index would bring gigabytes of CUDA packages. PROCESSES=N runs the tests in N processes: by default
# one more than the cores of a small machine, because many tests wait for a server or a clock.
PYTHON ?= python3
TORCH ?= torch==2.13.0
TORCH_INDEX ?=
TAG ?=
PROCESSES ?= 3
BIN := .venv/bin
READY := .venv/ready
LUCENE := .venv/lucene
DOCS := .venv/docs
DEMO := .demo/ready

unexport PYTHONDONTWRITEBYTECODE  # else each process of the tests compiles all of the package

.PHONY: demo test soak mutate check board docs adapters dist workflows nightly bench bench-quick clean

demo: $(DEMO)  # without any tool of development, as a user installs it
	.demo/bin/lm-eval-rag demo

test: $(READY) $(LUCENE)
	$(BIN)/python -m pytest -n $(PROCESSES) --dist worksteal

soak: $(READY)
	LM_EVAL_RAG_KILLS=50 $(BIN)/python -m pytest tests/faults -s --timeout 1200

mutate: $(READY)
	$(BIN)/python scripts/mutate.py

board: $(READY)
	$(BIN)/python scripts/board.py --runs board_runs

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tests/typed_method.py
	$(BIN)/python -m pytest tests/test_imports.py

docs: $(DOCS)
	LM_EVAL_RAG_CACHE=$(CURDIR)/.cache/docs NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

adapters: .adapters/ready
	.adapters/bin/python -m pytest tests/test_adapters.py

dist: $(READY)
	$(BIN)/python scripts/check_tag.py "$(TAG)"
	$(BIN)/python -m build

bench: $(READY)  # ratios against named peers beside their goals, in about fifteen minutes; docs/scale.md says what they mean
	$(BIN)/python scripts/bench.py --out bench

bench-quick: $(READY)  # some of them, in two minutes
	$(BIN)/python scripts/bench.py --out bench --quick

workflows: $(READY)
	$(BIN)/python scripts/workflows.py

# The environment is then another one: the next target makes it anew. Tests of Ray take 38 CPU seconds: `make test` has none.
nightly: $(READY) $(LUCENE)
	$(BIN)/python -m pip install "lm_eval[api] @ git+https://github.com/EleutherAI/lm-evaluation-harness@main"
	$(BIN)/python -m pip install -e ".[ray]"
	rm $(READY)
	$(BIN)/python -m pytest -n $(PROCESSES) --dist worksteal

$(READY): pyproject.toml lm_eval_rag.pth lm_eval_rag.start
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) "$(TORCH)"
	$(BIN)/python -m pip install -e ".[hf,dev]"
	touch $@

$(DEMO): pyproject.toml lm_eval_rag.pth lm_eval_rag.start
	$(PYTHON) -m venv .demo
	.demo/bin/python -m pip install $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) "$(TORCH)"
	.demo/bin/python -m pip install ".[hf]"
	touch $@

# pip builds a wheel of pyserini; its jar alone is used, and its requirements are not wanted.
$(LUCENE): $(READY)
	$(BIN)/python -m pip install --no-deps pyserini==1.6.0 || echo "Without pyserini the tests of retriever=lucene are skipped."
	touch $@

$(DOCS): $(READY)
	$(BIN)/python -m pip install -e ".[docs]"
	touch $@

.adapters/ready: pyproject.toml
	$(PYTHON) -m venv .adapters
	.adapters/bin/python -m pip install -e . pytest pytest-timeout filelock langchain-core llama-index-core haystack-ai dspy
	touch $@

clean:
	rm -rf .venv .demo .adapters .cache mutants site build dist .mypy_cache .ruff_cache .pytest_cache
