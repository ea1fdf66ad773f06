# shellcheck shell=bash
# What type checkers say of the Python package. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev test types
#: mypy and pyright find what is misspelt in a user's code, in an environment of their own

# basedpyright is pyright in one wheel: pyright's own downloads it, and Node, when it is first run.
checker_packages=(numpy pytest mypy basedpyright)

test_types() {
  make_venv build/types-venv "${checker_packages[@]}"
  step "build" build release && run_pytest_of build/types-venv/bin/python tests/types
}
