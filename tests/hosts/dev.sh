# shellcheck shell=bash
# Hosts that make one stream. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev test hosts
#: any number of hosts in step, in one process; and torchrun with three agents, one of which is killed, in an environment with torch

test_hosts() {
  local python=${PENSTOCK_FRAMEWORKS_PYTHON-}
  if [ -z "$python" ]; then
    make_venv build/hosts-venv numpy pytest cloudpickle torch
    python=build/hosts-venv/bin/python
  fi
  step "build" build release || return 0
  if step "hosts in step" build/release/bin/tests_hosts; then passed=$((passed + 1)); fi
  run_pytest_of "$python" tests/hosts
}
