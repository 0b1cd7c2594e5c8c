# make help lists the targets; the work is done by scripts/.
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run cluster run-agent-microsandbox test test-microsandbox build bench check cover fault fmt fuzz golden matrix screenshots clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## set up what is missing, build, start the server on 127.0.0.1:8000
	@scripts/run.sh $(ARGS)

cluster: build ## start Redis, three nodes and one address in front of them, in .cache/cluster; says how to end it
	@scripts/setup.sh cluster
	@scripts/cluster.sh up .cache/cluster

test: ## set up what is missing, run every test that can run here (ARGS="-run X ./engine")
	@scripts/setup.sh test
	@scripts/test.sh $(ARGS)

test-microsandbox: ## test the provider microsandbox; RUN_MICROSANDBOX_TESTS=1 also with a live one, as the MSB_ settings name it
	@scripts/setup.sh test
	@scripts/msb.sh >/dev/null || echo "going on without msb" >&2
	@scripts/test.sh $(ARGS) ./provider/microsandbox/... ./internal/mailbox/...

run-agent-microsandbox: build ## start the server with provider microsandbox, as the MSB_ settings say
	@SANDBOX_PROVIDER=microsandbox scripts/run.sh $(ARGS)

build: ## build bin/cove, one static executable
	@scripts/setup.sh build
	@scripts/build.sh

bench: ## measure sandboxes and the engine, beside others; fails where a number that must be reached is missed
	@scripts/setup.sh bench
	@scripts/bench.sh $(ARGS)

check: ## format, vet, lint, modules, vulnerabilities, other machines, scripts
	@scripts/setup.sh check
	@scripts/check.sh

cover: ## statement coverage by package; fails below 89 %
	@scripts/setup.sh test
	@scripts/cover.sh $(ARGS)

fault: ## break a cluster for five minutes and check what clients were told (COVE_FAULT_SEED, COVE_FAULT_TIME)
	@scripts/setup.sh test
	@scripts/fault.sh $(ARGS)

fmt: ## format the code
	@scripts/tool.sh golangci-lint fmt

fuzz: ## run every fuzz target (FUZZTIME=30s each)
	@scripts/fuzz.sh

golden: ## rewrite the files that tests compare with
	@scripts/golden.sh

matrix: ## run the conformance suite on every provider and print what passes where (ARGS=-write: into docs/providers.md)
	@scripts/setup.sh test
	@scripts/matrix.sh $(ARGS)

screenshots: build ## take pictures of each page of the console, in both themes, into .cache/screenshots
	@scripts/setup.sh test
	@scripts/screenshots.sh $(ARGS)

clean: ## remove what was built
	@rm -rf bin .cache
