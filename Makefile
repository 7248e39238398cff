# Everything starts with `make demo` or `make test`: both install what is missing, choose the engine
# and share one build. Settings, from the environment or the command line:
#   ENGINE=v8|quickjs    instead of choosing
#   RUSTY_V8_ARCHIVE     V8's prebuilt static library (a file or a URL)
#   RUSTY_V8_MIRROR      where to find the releases that V8's crate downloads from
#   CARGO_TARGET_DIR     where to build; not in the clone unless you say so
#   JOBS, NICE           how many compilers `make v8` runs at a time (all cores), and how nicely (10)
#   PREFIX               where `make install` puts bin/tenon
#   RUNS, LOAD           how often `make test-stress` runs the tests (10), beside how many busy processes (10)
#   TARGET, SECONDS      what `make fuzz` fuzzes, instead of everything, and how long, instead of 600 seconds each
#   DURATION             how many seconds `make soak` takes, instead of 600
#   OUT                  where `make bench` puts its page, instead of bench/ in the target folder
#   ARGS                 more arguments for test, demo, bench and soak; for bench also one question, such as 'reload --soak 1000'

.DEFAULT_GOAL := help
# The steps share one target folder, so side by side they would only wait for cargo's lock.
.NOTPARALLEL:
.PHONY: help demo test test-stress build bench soak fuzz lint types fmt setup engine v8 install tools

ifneq ($(filter-out v8 quickjs,$(ENGINE)),)
$(error ENGINE=$(ENGINE): the engines are v8 and quickjs)
endif

# $(shell) does not see what is set on make's command line.
settings = $(foreach v,ENGINE RUSTY_V8_ARCHIVE RUSTY_V8_MIRROR CARGO_TARGET_DIR CARGO_HOME XDG_CACHE_HOME,$(if $($v),$v='$($v)'))

# Choosing may ask the network, so it happens at the first use and once: the variable replaces itself.
engine = $(eval engine := $$(shell $$(settings) scripts/engine.sh || echo none))$(engine)

help: ## Show this list
	@echo 'usage: make TARGET [ENGINE=v8|quickjs] [ARGS=...]'
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1	\2/p' Makefile | while IFS='	' read -r name what; do printf '  %-12s%s\n' "$$name" "$$what"; done

demo: build ## Build, then watch extensions load, answer calls and fail safely
	@scripts/task.sh demo $(engine) $(ARGS)

test: build ## Build, then run all tests
	@scripts/task.sh test $(engine) $(ARGS)

test-stress: build ## Build, then run all tests RUNS times beside LOAD busy processes; how often each failed
	@RUNS='$(RUNS)' LOAD='$(LOAD)' scripts/task.sh test-stress $(engine) $(ARGS)

build: setup ## Build tenon; the last line is the path of the binary
	@scripts/task.sh build $(engine)

bench: build ## Build, then measure beside node processes; writes a page with charts
	@OUT='$(OUT)' scripts/task.sh bench $(engine) $(ARGS)

soak: build ## Build, then calls, reloads, agents and faults for ten minutes; what is lost or left
	@DURATION='$(DURATION)' scripts/task.sh soak $(engine) $(ARGS)

fuzz: tools ## Fuzz TARGET, or all targets one after the other, for SECONDS each (600); see fuzz/README.md
	@fuzz/run.sh $(or $(SECONDS),600) $(TARGET)

lint: setup ## Check formatting, clippy's lints and the documentation; no warning passes
	@scripts/task.sh lint $(engine)

types: ## Check the extensions with tsc --strict, and the SDK's names against the public SDK's
	@scripts/types.sh

fmt: ## Format the Rust code
	@scripts/task.sh fmt

# Apart from `setup`, because choosing an engine needs some of the tools.
tools:
	@scripts/setup.sh

setup: tools ## Install the Debian packages that are missing
	@scripts/setup.sh $(engine)

engine: ## Print the engine that would be used
	@scripts/task.sh engine $(engine)

v8: ## Build V8's library from source, once, where the prebuilt one is out of reach
	@scripts/v8/build.sh

install: build ## Copy tenon to ~/.local/bin, or to PREFIX/bin
	@scripts/task.sh install $(engine)
