# For people. CI calls the scripts in ci/, whose exit codes count (make turns every failure into 2).
.PHONY: help conformance test lint unit bench kind-airgap clean

help:         ## show this
	@sed -n 's/^\([a-z-]*\): *## /make \1	/p' $(MAKEFILE_LIST) | expand -t 20

conformance:  ## the main job: environment, binaries, embedded cluster, core suites, report
	@ci/conformance

test:         ## the project's own tests: lint, types, contracts, unit tests, the smoke profile
	@ci/test

lint:         ## style, format, types, direction of imports, workflows
	@ci/lint

unit:         ## unit tests only: no cluster
	@ci/test unit

bench:        ## how long a start, a run, a wait and a judgement take here
	@ci/bench/start && ci/bench/walkthrough && ci/bench/waits && ci/bench/judge

kind-airgap:  ## kind's images without a container registry, and a private Docker daemon (docs/airgap.md)
	@ci/airgap/build

clean:        ## remove what tests and reports left here; .venv and the cache of binaries stay
	@rm -rf build reports allure-results .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
