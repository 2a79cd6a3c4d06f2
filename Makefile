# What people run by hand. CI is .ci/run.

FUZZTIME ?= 60s

.PHONY: format lint test fuzz bundle

format: ## format all sources
	go tool -modfile=internal/tools/go.mod gofumpt -w $$(git ls-files '*.go')

lint: ## vet and lint
	go vet ./...
	go tool -modfile=internal/tools/go.mod staticcheck ./...

test: ## all tests
	go test ./...

fuzz: ## fuzz every target for FUZZTIME
	@set -e; for dir in $$(git grep -l '^func Fuzz' -- '*_test.go' | xargs -n1 dirname | sort -u); do \
	  for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$dir/*_test.go | cut -c6- | sort -u); do \
	    echo "fuzz ./$$dir $$target"; \
	    go test ./$$dir -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) >/tmp/loophost-fuzz.$$$$ 2>&1 || { cat /tmp/loophost-fuzz.$$$$; exit 1; }; \
	  done; \
	done

bundle: ## rebuild the bundled plugins
	go generate ./plugins/bundled
