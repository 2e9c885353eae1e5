PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
READY := $(VENV)/.ready

.PHONY: demo test check format bench clean

demo: $(READY)           ## show the main job working, with nothing to configure
	@$(BIN)/toolfold demo

test: $(READY)           ## run the tests
	$(BIN)/python -m pytest -n 2

check: $(READY)          ## format, lint, types, tests
	$(BIN)/ruff format --check src tests bench training docs
	$(BIN)/ruff check src tests bench training docs
	$(BIN)/pyright
	$(BIN)/python -m pytest -n 2

format: $(READY)         ## mend what a machine can
	$(BIN)/ruff format src tests bench training docs
	$(BIN)/ruff check --fix src tests bench training docs

bench: $(READY)          ## measure, beside Hermes and FastMCP in the same run
	PYTHONPATH=. $(BIN)/python -m bench

clean:
	rm -rf $(VENV) .bench .pytest_cache .ruff_cache .hypothesis dist build

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade 'pip>=25.1'
	$(PIP) --constraint constraints.txt --editable . --group dev
	$(PIP) --constraint constraints.txt --no-deps --group ranks
	touch $(READY)
