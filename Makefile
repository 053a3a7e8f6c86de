# Each target sets up all it needs, on a machine that has Python 3.11 or newer and nothing else.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
  command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null \
  && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo lab test test-lite lint docs lite notebooks binder binder-pins bench clean

demo: $(VENV)/demo.ok
	$(BIN)/jarvis ask --engine local --agent orchestrator --tools calculator,think "What is 15% of 340?"

lab: $(VENV)/lab.ok
	$(BIN)/jupyter lab notebooks/01-first-question.ipynb

test: $(VENV)/dev.ok
	$(BIN)/python -m pytest -n auto --dist loadfile $(ARGS)

test-lite: $(VENV)/dev.ok $(VENV)/lite.ok
	$(BIN)/python -m pytest tests/lite $(ARGS)

lint: $(VENV)/dev.ok
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

notebooks: $(VENV)/dev.ok
	$(BIN)/python scripts/notebooks.py $(ARGS)

binder: $(VENV)/dev.ok
	$(BIN)/python scripts/binder_check.py $(ARGS)

binder-pins: $(VENV)/dev.ok
	{ echo '# Made by `make binder-pins` from pyproject.toml and requirements.in: all that the lessons need, pinned.'; \
	  $(BIN)/uv pip compile -q pyproject.toml binder/requirements.in --extra local --python-version 3.11 \
	    --python-platform x86_64-manylinux_2_28 --no-header --no-annotate; } > binder/requirements.txt

bench: $(VENV)/dev.ok
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(VENV)/docs.ok $(VENV)/lite.ok
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs site/html
	$(BIN)/python scripts/lite.py --output site/html/lite
	@echo "open site/html/index.html"

lite: $(VENV)/lite.ok
	$(BIN)/python scripts/lite.py $(ARGS)

$(VENV)/python.ok:
	@test -n "$(PYTHON)" || { echo "jarvis_nb needs Python 3.11 to 3.14: install one, or say make PYTHON=/path/to/python3"; exit 1; }
	@echo "setting up $(VENV): packages are fetched quietly, which takes a minute or two"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@touch $@

$(VENV)/demo.ok: $(VENV)/python.ok pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[local]'
	$(BIN)/jarvis models fetch
	@touch $@

$(VENV)/dev.ok: $(VENV)/python.ok pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	$(BIN)/jarvis models fetch
	scripts/chromium.sh
	@touch $@

$(VENV)/lite.ok: $(VENV)/python.ok pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[lite]'
	@touch $@

$(VENV)/lab.ok: $(VENV)/demo.ok
	$(BIN)/python -m pip install --quiet --disable-pip-version-check jupyterlab 'ipykernel>=7.4'
	@touch $@

$(VENV)/docs.ok: $(VENV)/python.ok pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

clean:
	rm -rf $(VENV) build dist site docs/lessons .pytest_cache .ruff_cache .hypothesis
