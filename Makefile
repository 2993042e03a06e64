# `make` lists what there is to do.
.DEFAULT_GOAL := help
.PHONY: help run test test-full chaos bench bench-hash bench-engines bench-overload fuzz miri pages lint fmt

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r target text; do printf '%-16s %s\n' "$$target" "$$text"; done

run: ## build the release binary and start it with data in ./data; options of `serve` in ARGS="…"
	@scripts/check-tools cc cargo
	@cargo build --release --locked --package server --bin portiere
	@exec target/release/portiere serve --data data $(ARGS)

test: ## install what the tests need and lack, and run all of them
	@scripts/test

test-full: ## the same tests with release figures: hours, not minutes
	@TEST_SCALE=full scripts/test

chaos: ## kill, pause and cut off database servers under load: 20 rounds of each scenario, about three hours
	@scripts/install-test-tools
	@cargo build --locked --package server --bin portiere
	@tests/chaos/run all --rounds 20 --whole $(ARGS)

bench: ## measure the release build, each figure beside its reference
	@scripts/bench $(ARGS)

bench-hash: ## measure password hashing beside the argon2, bcrypt and argon2-rust crates
	@cargo run --release --locked --package hasher --example bench_hash -- $(ARGS)

bench-engines: ## measure the same load on SQLite, PostgreSQL and MariaDB, with two nodes, with the database far away, and a move
	@scripts/bench --only engines,move $(ARGS)

bench-overload: ## measure ten times the capacity, crowds of browsers, hostile clients, 2,000 sessions, hash workers
	@scripts/bench --only overload,w2,workers $(ARGS)

fuzz: ## feed every parser that reads what strangers send with mutated input
	@scripts/fuzz $(ARGS)

miri: ## run the portable kernels' tests under Miri
	@scripts/miri $(ARGS)

pages: ## take the contact sheets of all pages in docs/pages
	@scripts/pages

lint: ## rustfmt and clippy, without changing anything
	@cargo fmt --all --check
	@cargo clippy --workspace --all-targets --locked -- -D warnings

fmt: ## format the source
	@cargo fmt --all
