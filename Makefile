# make help lists the targets; the work is done by scripts/.
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run cluster run-agent-microsandbox test test-all test-microsandbox build bench check cover fault fmt fuzz golden matrix mutate screenshots clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## set up what is missing, build, start the server on 127.0.0.1:8000
	@scripts/run.sh $(ARGS)

cluster: build ## start Redis, three nodes and one address in front of them, in .cache/cluster; says how to end it
	@scripts/setup.sh cluster
	@scripts/cluster.sh up .cache/cluster

test: ## the gate: set up what is missing, test every package and every boundary (ARGS="-run=X ./engine", COVE_FULL=./engine)
	@scripts/setup.sh test
	@scripts/test.sh $(ARGS)

test-all: ## everything: all configurations, long faults, SDKs, browser pages, documentation; with coverage
	@scripts/setup.sh test-all
	@COVE_COVER=$${COVE_COVER-89} scripts/test.sh --all $(ARGS)

test-microsandbox: ## test the provider microsandbox; RUN_MICROSANDBOX_TESTS=1 also with a live one, as the MSB_ settings name it
	@scripts/setup.sh test
	@scripts/msb.sh >/dev/null || echo "going on without msb" >&2
	@scripts/test.sh --all $(ARGS) ./provider/microsandbox/... ./internal/mailbox/...

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

cover: ## the gate with statement coverage by package; fails below 85 %
	@scripts/setup.sh test
	@COVE_COVER=85 scripts/test.sh $(ARGS)

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
	@scripts/setup.sh test-all
	@scripts/matrix.sh $(ARGS)

mutate: ## take out one defence at a time and run the test of the gate that must notice it (ARGS=archive)
	@scripts/setup.sh test
	@go run ./scripts/mutate $(ARGS)

screenshots: build ## take pictures of each page of the console, in both themes, into .cache/screenshots
	@scripts/setup.sh test
	@scripts/screenshots.sh $(ARGS)

clean: ## remove what was built
	@rm -rf bin .cache
