# Every job of the repository by one word. The work is done by the scripts in tools/.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup build train test lint format tidy sanitize soak bench docs clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

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

sanitize: ## Unit tests under AddressSanitizer and UBSan, in build-asan/
	@tools/sanitize.sh

soak: ## Kill a run 100 times and compare its end with an unbroken one (minutes)
	@tools/soak.sh $(ARGS)

bench: ## Build the benchmarks and compare with the peers
	@tools/bench.sh $(ARGS)

docs: ## Write the generated pages of docs/
	@tools/docs.sh

clean: ## Remove the build folders; .venv and runs stay
	@rm -rf build build-asan
