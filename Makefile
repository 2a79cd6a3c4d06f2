# What people run by hand. CI is .ci/run.

FUZZTIME ?= 60s
SOAKTIME ?= 60s
FLEETTIME ?= 5m
FLEETSTORE ?= redis

.PHONY: format lint test fuzz soak fleet ticketfleet bench bundle

format: ## format all sources
	go tool -modfile=internal/tools/go.mod gofumpt -w $$(git ls-files '*.go')

lint: ## vet and lint
	go vet ./...
	go tool -modfile=internal/tools/go.mod staticcheck ./...

test: ## all tests
	go test ./...

# A package is compiled once for all its targets. What fails is not made smaller:
# that takes longer than finding it.
fuzz: ## fuzz every target for FUZZTIME, a duration or a count as in 300x
	@set -e; tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; cache=$$(go env GOCACHE)/fuzz/loophost; \
	for dir in $$(git grep -l '^func Fuzz' -- '*_test.go' | xargs -n1 dirname | sort -u); do \
	  go test -c -fuzz . -o "$$tmp/fuzz.test" ./$$dir; \
	  for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$dir/*_test.go | cut -c6- | sort -u); do \
	    echo "fuzz ./$$dir $$target"; \
	    (cd $$dir && "$$tmp/fuzz.test" -test.run '^$$' -test.fuzz "^$$target\$$" -test.fuzztime $(FUZZTIME) \
	      -test.fuzzminimizetime 1x -test.fuzzcachedir "$$cache/$$dir") >"$$tmp/out" 2>&1 || { cat "$$tmp/out"; exit 1; }; \
	  done; \
	done

soak: ## keep 64 sessions busy for SOAKTIME and look for leaks
	go test ./internal/soak -count=1 -v -timeout 0 -args -soak $(SOAKTIME)

fleet: ## kill, stop and replace 24 processes on FLEETSTORE for FLEETTIME, and compare
	go run ./internal/fleet -store $(FLEETSTORE) -for $(FLEETTIME)

ticketfleet: ## kill, stop and replace 8 workers on FLEETSTORE over 200 tickets, and look at every one
	go run ./internal/ticketfleet -store $(FLEETSTORE)

bench: ## print what the benchmarks with a target measure, as ratios to their floors
	go run ./internal/bench/table

bundle: ## rebuild the bundled plugins
	go generate ./plugins/bundled
