# shellcheck shell=bash
# Hosts that make one stream. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev test hosts
#: any number of hosts in step, in one process; hosts that change while they live; a hundred kills and stops of helpers; torchrun with three agents, one of which is killed; Ray with a node that is
#: removed, in an environment with both; and srun on three nodes, where Debian's slurmd, slurmctld, slurm-client and munge are installed

test_hosts() {
  local python=${PENSTOCK_FRAMEWORKS_PYTHON-}
  if [ -z "$python" ]; then
    make_venv build/hosts-venv numpy pytest cloudpickle pyyaml torch ray
    python=build/hosts-venv/bin/python
  fi
  step "build" build release || return 0
  if step "hosts in step" build/release/bin/tests_hosts; then passed=$((passed + 1)); fi
  if ! command -v slurmd >/dev/null || [ "$(id -u)" != 0 ]; then
    echo "not run: srun on three nodes; it needs root, and: apt-get install slurmd slurmctld slurm-client munge"
    not_run=$((not_run + 1))
  fi
  run_pytest_of "$python" tests/hosts
  PENSTOCK_HELPER_KILLS=100 run_pytest_of "$python" tests/e2e/test_helpers.py -s -k killed
}
