# shellcheck shell=bash
# Simulated histories. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev test sim [--seed S] [--histories N]
#: many simulated histories: front, workers, disk and consumers out of one seed

# Long campaigns of the simulator; the short one is among the unit tests. Options go to its program.
test_sim() {
  step "build" build release simulate || return 0
  say "simulated histories $*"
  if step "simulated histories" build/release/bin/simulate "$@"; then passed=$((passed + 1)); fi
}
