# Two commands are the door: `make demo` and `make test`. Both set everything up.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
BROWSER := $(VENV)/browser

.PHONY: demo test lint docs pictures bench newsgroups kills cluster published reproduction setup clean

demo: $(READY)
	$(BIN)/precedents demo demo --force

test: setup lint
	$(BIN)/pytest -n 2 --dist worksteal

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The pictures of pages that the documentation shows.
pictures: setup
	$(BIN)/python docs/pictures.py

bench: $(READY)
	$(BIN)/python -m benchmarks.environments
	$(BIN)/python -m benchmarks.speed --out benchmarks/results --curvature --mobilenet-fisher
	$(BIN)/python -m benchmarks.growth --out benchmarks/results
	$(BIN)/python -m benchmarks.memory --out benchmarks/results
	$(BIN)/python -m benchmarks.estimates --out benchmarks/results
	$(BIN)/python -m benchmarks.sparse_text --out benchmarks/results
	$(BIN)/python -m benchmarks.index --out benchmarks/results $(if $(DATA),--data $(DATA))
	$(BIN)/python -m benchmarks.explorer --out benchmarks/results
	$(BIN)/python -m benchmarks.page --results benchmarks/results --out docs

# An audit of the size of 20 Newsgroups (drawn texts, no download): its table, seconds and peak memory.
newsgroups: $(READY)
	$(BIN)/python -m benchmarks.newsgroups --memory "4 GB" --within "9 min" --out benchmarks/results

# 50 random kills each of audit, save, train, reproduction and index: minutes. COUNT=N for another number.
kills: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.kills --count $(or $(COUNT),50) --out benchmarks/results

# A Ray cluster of two nodes, one of which is killed while it builds an index: half a minute.
cluster: $(READY)
	$(BIN)/python -m benchmarks.cluster --out benchmarks/results

# The data sets as their owners publish them, where DATA=FOLDER has a subfolder for each: a minute.
published: $(READY)
	PRECEDENTS_DATA=$(DATA) $(BIN)/pytest tests/zoo/published.py

# The paper's evaluation: hours to days; stopped, it goes on. DATA=FOLDER where the files are, or they are downloaded.
reproduction: $(READY)
	$(BIN)/precedents reproduction run $(if $(DATA),--data $(DATA))
	for what in table compare figures; do $(BIN)/precedents reproduction $$what --out docs/reproduction --quiet || exit 1; done

setup: $(READY) $(BROWSER)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip -c constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $(READY)

# Chromium, for the tests of the report; without one they fail, everything else works.
$(BROWSER): $(READY)
	@if $(BIN)/python tests/chromium.py; then touch $(BROWSER); fi

clean:
	rm -rf $(VENV) demo site .mypy_cache .pytest_cache .ruff_cache .hypothesis
