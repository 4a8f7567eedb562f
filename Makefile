# Every job of the repository by one word. The work is done by the scripts in tools/.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup build train test lint format tidy clang sanitize tsan fuzz soak bench bench-compare docs clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what is missing: system packages, .venv with torch
	@tools/setup.sh

build: ## Build the program build/gradstep
	@tools/build.sh

train: ## Train the MLP on Fashion-MNIST into runs/first (more flags: make train ARGS="--precision bf16 -o runs/bf16")
	@tools/train.sh $(ARGS)

test: ## Lint, build everything, run every test
	@tools/test.sh $(ARGS)

lint: ## Check format, layering and changed files (mend the format: make format)
	@tools/lint.sh

format: ## Rewrite C++ and Python sources in the house format
	@tools/format.sh

tidy: ## Run clang-tidy over all of src/ (slow)
	@tools/tidy.sh --all

clang: ## Compile everything with clang++, warnings as errors, in build-clang/ (ARGS=--syntax: check only, in minutes)
	@tools/clang.sh $(ARGS)

sanitize: ## Unit tests under AddressSanitizer and UBSan, in build-asan/
	@tools/sanitize.sh

tsan: ## Unit tests that use threads under ThreadSanitizer, in build-tsan/
	@tools/sanitize.sh thread

fuzz: ## Fuzz the readers with libFuzzer (one of them: make fuzz ARGS="idx -max_total_time=600")
	@tools/fuzz.sh $(ARGS)

soak: ## Kill a run 100 times and compare its end with an unbroken one (minutes)
	@tools/soak.sh $(ARGS)

bench: ## Build the benchmarks and compare with the peers
	@tools/bench.sh $(ARGS)

bench-compare: ## Compare this tree with another commit in one run (make bench-compare BASE=HEAD~1)
	@BASE="$(BASE)" tools/bench_compare.sh $(ARGS)

docs: ## Write docs/cli.md, and the API reference in build/docs/api/ (ARGS=--api: only the reference, in seconds)
	@tools/docs.sh $(ARGS)

clean: ## Remove the build folders; .venv and runs stay
	@rm -rf build build-asan build-tsan build-clang build-fuzz build-compare
	@git worktree prune
