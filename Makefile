# Thin front end of meson and tests/run. `make help` lists the targets.

PREFIX ?= /usr/local
DESTDIR ?=
ARGS ?= --listen ws://127.0.0.1:0
STAGES ?=
FUZZ_SECONDS ?= 60
REAL_CLIENT_ARGS ?=
CONFORM_CALLS ?= 20000
CONFORM_SEED ?= 1
BENCH_ARGS ?=
CONSOLE ?=
SOAK_SECONDS ?= 300
SOAK_ARGS ?=
PLANTED_ARGS ?=
SUITES ?=
VERIFY_ARGS ?=

MESON_SETUP = meson setup --prefix=$(PREFIX)
NINJA = ninja --quiet

.PHONY: all run check test verify conform real-client bench fuzz soak peers planted lint format hooks install uninstall dist-static bash release image image-debian npm deb clean help FORCE

all: build/exec-server ## build build/exec-server and build/xs (default)

build/build.ninja:
	@tools/deps --check build
	$(MESON_SETUP) build

# ninja knows what is out of date.
build/exec-server: build/build.ninja FORCE
	@$(NINJA) -C build exec-server xs

run: ## install what is missing, build, start the server (ARGS=..., CONSOLE=1 for its page)
	@tools/deps build
	@$(MAKE) --no-print-directory build/exec-server >&2
	@exec tools/run-server $(ARGS) $(if $(CONSOLE),--console ws://127.0.0.1:0)

check: ## build, lint, unit tests and quick end-to-end tests, in a minute
	@tools/deps build test
	@tests/run check

test: ## run every test (STAGES="unit e2e" for some)
	@tools/deps build test
	@tests/run $(STAGES)

verify: ## run every suite in full, resumable (SUITES="conform soak" for some)
	@tools/deps build test
	@tests/run build
	@tests/verify/run $(VERIFY_ARGS) $(SUITES)

conform: ## compare exchanges with the reference's; every difference is explained
	@tools/deps build test
	@$(MAKE) --no-print-directory build/exec-server
	@reference=$$(tools/reference) && set -- --server build/exec-server --reference "$$reference" && \
	tests/conform/run "$$@" --slow --seed $(CONFORM_SEED) --table --json build/conform.json && \
	tests/conform/fsdiff "$$@" --calls $(CONFORM_CALLS) --seed $(CONFORM_SEED) && \
	tests/conform/fsdiff "$$@" --sandbox --seed $(CONFORM_SEED) && \
	tests/conform/rulesdiff "$$@" --random 2000 --seed $(CONFORM_SEED) && \
	echo "conform: every observation is in build/conform.json"

real-client: ## drive the real Codex client, new and old (REAL_CLIENT_ARGS=--help)
	@tools/deps build
	@$(MAKE) --no-print-directory build/exec-server
	@tests/real-client/run $(REAL_CLIENT_ARGS)

bench: dist-static ## measure dist/exec-server beside the reference (BENCH_ARGS=--quick)
	@tools/deps build bench
	@$(MAKE) --no-print-directory build/build.ninja
	@meson compile -C build execserver:shared_library >/dev/null
	@$(NINJA) -C build-static src/libexecserver.a
	@bench/run $(BENCH_ARGS)

fuzz: ## run every fuzz target for FUZZ_SECONDS (60)
	@tools/deps build fuzz
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run fuzz

soak: ## mixed load with faults for SOAK_SECONDS (300), then a check for leaks
	@tools/deps build test
	@$(MAKE) --no-print-directory build/exec-server
	@tests/soak/run --seconds $(SOAK_SECONDS) $(SOAK_ARGS)

peers: ## test with WebSocket and HTTP clients and proxies of others
	@tools/deps build test
	@tests/run peers

planted: ## build faults in; the checks must notice each (PLANTED_ARGS=--list)
	@tools/deps build test
	@tools/deps fuzz || true
	@tests/planted/run $(PLANTED_ARGS)

lint: ## check format, layers, names, spelling, subjects, and what the analysers say
	@tools/deps build lint
	@tools/lint

format: ## rewrite the C files in the house format
	@tools/deps lint
	@tools/lint --format

hooks: ## let git check the subject of each commit in this clone
	@hook="$$(git rev-parse --git-path hooks)/commit-msg" && \
	if [ -e "$$hook" ] && ! grep -q check-subject "$$hook"; then \
	    echo "$$hook exists; let it call tools/check-subject with its argument" >&2; exit 1; \
	fi && mkdir -p "$${hook%/*}" && \
	printf '#!/bin/sh\nexec tools/check-subject "$$1"\n' >"$$hook" && chmod +x "$$hook"

install: build/build.ninja ## install programs, library, documents, completions, units (DESTDIR, PREFIX)
	@tools/install --prefix '$(PREFIX)' --destdir '$(DESTDIR)' build

uninstall: build/build.ninja ## remove what install has installed (DESTDIR, PREFIX)
	@tools/install --remove --prefix '$(PREFIX)' --destdir '$(DESTDIR)' build

build-static/build.ninja:
	@tools/deps build
	$(MESON_SETUP) build-static -Dstatic=true -Dtests=disabled -Ddebug=false

dist-static: build-static/build.ninja ## stripped static files: dist/exec-server, -console, dist/xs
	@$(NINJA) -C build-static exec-server exec-server-console xs
	@mkdir -p dist
	@rm -f dist/exec-server-console
	@for name in exec-server exec-server-console xs; do \
	    case $$name in *-console) ! grep -qs 'no page' build-static/src/assets_page.c || continue ;; esac; \
	    strip -o dist/$$name.new build-static/$$name && mv dist/$$name.new dist/$$name && \
	    ls -l dist/$$name || exit 1; \
	done

bash: dist/bash ## Debian's bash with patches/bash-exec-wrapper.patch: dist/bash

dist/bash: patches/bash-exec-wrapper.patch tools/bash
	@tools/deps build source
	@tools/bash $@

release: ## static files for x86-64 and aarch64, sums, SPDX list: dist/release
	@tools/deps build cross
	@tools/release dist/release

image: release ## container images as OCI archive: dist/exec-server-image.tar
	@tools/image dist/release/exec-server-x86_64 dist/release/exec-server-aarch64 \
	    dist/exec-server-image.tar

npm: release ## npm package whose npx starts the MCP server: dist/exec-server-mcp-VERSION.tgz
	@tools/npm dist/release/exec-server-x86_64 dist/release/exec-server-aarch64 dist

deb: ## Debian packages: dist/deb
	@tools/deps build package
	@tools/deb dist/deb

image-debian: deb ## the same on Debian, with exec-server-http: dist/exec-server-debian-image.tar
	@tools/image --debian dist/deb/exec-server_*.deb dist/deb/exec-server-http_*.deb \
	    dist/exec-server-debian-image.tar

clean: ## remove everything that was built
	rm -rf build build-* dist

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile
