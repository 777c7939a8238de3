# Landfast. `make help` lists the targets.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X main.version=$(VERSION)
BUILD   := CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS)"

# Every platform that is built; all of them from one machine, because there is no cgo.
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

# Arguments of `make serve`, such as ARGS="--listen 127.0.0.1:9000".
ARGS ?=
# Rounds of `make faults`.
ROUNDS ?= 20
# Seeds of `make sim`, and the first of them.
SEEDS ?= 1000
FROM ?= 1
# Time for each target of `make fuzz`.
FUZZTIME ?= 30s

.DEFAULT_GOAL := build

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/landfast for this machine
	@mkdir -p bin
	$(BUILD) -o bin/landfast$(shell go env GOEXE) ./cmd/landfast

.PHONY: serve
serve: build ## Build and start the catalog; its state is ./landfast-data
	@exec bin/landfast$(shell go env GOEXE) serve $(ARGS)

.PHONY: test
test: ## Vet, run every test with the race detector, and see that planted mistakes are noticed
	@scripts/postgres >/dev/null
	go vet ./...
	go test -race -timeout 15m ./...
	go test -tags planted -timeout 10m -run 'Planted' ./internal/store/... ./internal/txn ./internal/kernel/... ./internal/reclaim ./internal/sim/...

.PHONY: lint
lint: ## Run golangci-lint, built in a cache outside the checkout
	@scripts/lint

.PHONY: conformance
conformance: ## Run real Iceberg clients against real servers, on either store: scripts/conformance --help
	@scripts/conformance --store embedded
	@scripts/conformance --store postgres

.PHONY: bench
bench: ## Measure figures, each beside a floor measured in the same run
	go run ./test/bench $(ARGS)

.PHONY: performance
performance: ## Measure everything, large things and other catalogs too, and write docs/performance.md
	@scripts/postgres >/dev/null
	go run ./test/bench -scale -with landfast-postgres -with landfast-postgres-3 -with iceberg-rest-fixture -with nessie -write docs/performance.md $(ARGS)

.PHONY: faults
faults: ## Play ROUNDS rounds of faults on real processes, of each store: kills, freezes, network, disk, clock, PostgreSQL
	go test -v -count=1 -timeout 90m ./test/crash -run TestFaults -args -rounds $(ROUNDS)

.PHONY: sim
sim: ## Run SEEDS seeds of the simulator on each variant of the store, from seed FROM
	go test -v -count=1 -timeout 0 ./internal/sim -run 'TestSim$$' -args -seeds $(SEEDS) -from $(FROM) $(ARGS)

.PHONY: fuzz
fuzz: ## Fuzz every decoder, FUZZTIME each
	@scripts/fuzz $(FUZZTIME)

.PHONY: generate
generate: ## Write the files that are made from the code; look at what changed
	go test ./internal/config ./internal/rest -update

.PHONY: build-all
build-all: ## Build dist/landfast-OS-ARCH for every platform
	@mkdir -p dist
	@set -e; for p in $(PLATFORMS); do \
		os=$${p%/*}; arch=$${p#*/}; ext=; [ $$os != windows ] || ext=.exe; \
		echo "dist/landfast-$$os-$$arch$$ext"; \
		GOOS=$$os GOARCH=$$arch $(BUILD) -o dist/landfast-$$os-$$arch$$ext ./cmd/landfast; \
	done

.PHONY: clean
clean: ## Delete what was built; the data directory stays
	rm -rf bin dist
