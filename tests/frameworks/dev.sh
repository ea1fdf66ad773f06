# shellcheck shell=bash
# The adapters with the frameworks themselves. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev test frameworks
#: the adapters for torch, JAX and TensorFlow with those themselves, in an environment of their own

framework_packages=(numpy pytest cloudpickle ml_dtypes torch torchdata jax tensorflow-cpu)

# torch, JAX and TensorFlow themselves, in an environment of their own.
test_frameworks() {
  local python=${PENSTOCK_FRAMEWORKS_PYTHON-}
  if [ -z "$python" ]; then
    make_venv build/frameworks-venv "${framework_packages[@]}"
    python=build/frameworks-venv/bin/python
  fi
  step "build" build release && run_pytest_of "$python" tests/frameworks
}
