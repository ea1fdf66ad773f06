# shellcheck shell=bash
# The adapters with the frameworks themselves. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev test frameworks [--kills N] [--campaign]
#: the adapters for torch, JAX and TensorFlow with those themselves, and trainers with their own packages, in an environment of their own; --kills kills each
#: trainer N times at random steps, and does nothing else; --campaign notes that

framework_packages=(
  numpy pytest cloudpickle ml_dtypes torch torchdata jax tensorflow-cpu
  transformers accelerate lightning keras albumentations torchvision datasets grain libarchive-c
  pyarrow h5py zarr lmdb fastavro fsspec array_record
)

# torch, JAX, TensorFlow and the trainers themselves, in an environment of their own.
test_frameworks() {
  local python=${PENSTOCK_FRAMEWORKS_PYTHON-}
  if [ -z "$python" ]; then
    make_venv build/frameworks-venv "${framework_packages[@]}"
    python=build/frameworks-venv/bin/python
  fi
  step "build" build release || return 0
  if [ $# = 0 ]; then
    run_pytest_of "$python" tests/frameworks
  elif step "trainers" with_python "$python" tests/frameworks/trainers/kills.py "$@"; then
    passed=$((passed + 1))
  fi
}
