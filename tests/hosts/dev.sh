# shellcheck shell=bash
# Hosts that make one stream. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev test hosts [--kills N] [--seed S] [--campaign]
#: any number of hosts in step, in one process; hosts that change while they live; torchrun with three agents, one of which is killed; Ray with a node that is
#: removed, and helpers on its nodes, in an environment with both; srun on three nodes, where Debian's slurmd, slurmctld, slurm-client and munge are
#: installed; and, as root, helpers and their lines that are killed, stopped and cut a hundred times; --kills does that alone; --campaign notes it in tests/campaigns.jsonl

helper_kills() {
  say "kills of helpers $*"
  if [ "$(id -u)" != 0 ] || ! command -v ip >/dev/null || ! command -v openssl >/dev/null; then
    echo "not run: kills of helpers; it needs root, ip and openssl"
    not_run=$((not_run + 1))
  elif step "kills of helpers" with_python .venv/bin/python tests/hosts/helper_kills.py "$@"; then
    passed=$((passed + 1))
  fi
}

test_hosts() {
  if [[ " $* " = *" --kills "* ]]; then
    if step "build" build release; then helper_kills "$@"; fi
    return 0
  fi
  local python=${PENSTOCK_FRAMEWORKS_PYTHON-}
  if [ -z "$python" ]; then
    make_venv build/hosts-venv numpy pytest cloudpickle pyyaml torch 'ray[train]'
    python=build/hosts-venv/bin/python
  fi
  step "build" build release || return 0
  if step "hosts in step" build/release/bin/tests_hosts; then passed=$((passed + 1)); fi
  if ! command -v slurmd >/dev/null || [ "$(id -u)" != 0 ]; then
    echo "not run: srun on three nodes; it needs root, and: apt-get install slurmd slurmctld slurm-client munge"
    not_run=$((not_run + 1))
  fi
  run_pytest_of "$python" tests/hosts
  helper_kills "$@"
}
