# shellcheck shell=bash
# The client under the oldest Python. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev test oldest_python
#: the client under the oldest Python that it promises, where there is one

# The client under the oldest Python that it promises, where there is one: of PENSTOCK_OLDEST_PYTHON, or on PATH.
test_oldest_python() {
  local version python
  version=$(sed -n 's/^requires-python = ">=\([0-9.]*\)"/\1/p' pyproject.toml)
  python=${PENSTOCK_OLDEST_PYTHON-$(command -v "python$version" || true)}
  if [ -z "$python" ] || ! "$python" -c '' 2>/dev/null; then
    say "oldest_python: NOT RUN, no Python $version: set PENSTOCK_OLDEST_PYTHON to one"
    not_run=$((not_run + 1))
    return 0
  fi
  # It does not come from Debian, so make_venv does not know it.
  [ -x build/oldest-venv/bin/python ] || "$python" -m venv build/oldest-venv
  build/oldest-venv/bin/python -m pip install --quiet --disable-pip-version-check numpy pytest nanobind
  step "configure build/oldest-python" cmake --preset release -B build/oldest-python -DPENSTOCK_PYTHON=ON -DPENSTOCK_TESTS=OFF \
    -DPENSTOCK_BENCH=OFF "-DPython_EXECUTABLE=$root/build/oldest-venv/bin/python" || return 0
  step "build the extension" fixed_addresses cmake --build build/oldest-python --target penstock_python penstock_python_files || return 0
  step "build" build release || return 0
  # Beside the package, as in the release build.
  rm -rf build/oldest-python/bin && ln -s ../release/bin build/oldest-python/bin
  PYTHONPATH=$root/build/oldest-python/python with_oldest tests/client
}

# Without the release build's package, which is of another Python.
with_oldest() {
  local status=0
  say "pytest $* under $(build/oldest-venv/bin/python --version)"
  rm -f "$results/pytest.xml"
  env --default-signal=INT PENSTOCK_BIN="$root/build/release/bin" \
    build/oldest-venv/bin/python -m pytest -q -p no:cacheprovider --junitxml "$results/pytest.xml" "$@" || status=$?
  count "$results/pytest.xml" "$status"
}
