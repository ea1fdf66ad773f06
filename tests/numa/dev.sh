# shellcheck shell=bash
# Two NUMA nodes, emulated. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev test numa
#: pipelines on a machine of two NUMA nodes, which QEMU emulates

# What `./dev test numa` needs besides, to boot another machine.
numa_packages=(qemu-system-x86 busybox-static)

# Pipelines on a machine of two NUMA nodes, emulated: Debian's kernel is unpacked into build/ and booted in QEMU.
test_numa() {
  [ "$(uname -m)" = x86_64 ] || die "./dev test numa emulates a machine of x86-64"
  install_packages "${numa_packages[@]}"
  local folder=$root/build/numa package
  if ! ls "$folder"/boot/vmlinuz-* >/dev/null 2>&1; then
    say "unpacking Debian's kernel into build/numa"
    mkdir -p "$folder"
    package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image.*\)/\1/p')
    (cd "$folder" && apt-get -o APT::Sandbox::User=root download -q "$package")
    dpkg-deb -x "$folder"/linux-image*.deb "$folder"
    rm "$folder"/linux-image*.deb
  fi
  step "build" build release penstock penstockd || return 0
  PENSTOCK_KERNEL=$(ls "$folder"/boot/vmlinuz-* | head -1) run_pytest tests/numa
}
