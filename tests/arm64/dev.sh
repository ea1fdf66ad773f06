# shellcheck shell=bash
# arm64, cross-built. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev test arm64 [PROGRAM]...
#: unit tests for arm64: built here with Debian's cross compiler, and run under qemu-user (root); without PROGRAM those of base, ring, io, codec and kernels

arm64_packages=(g++-aarch64-linux-gnu qemu-user-static mmdebstrap)
# What handles bytes that have to be equal on each machine, the memory that processes share, and loops of other instructions.
arm64_programs=(tests_base tests_ring tests_io tests_codec tests_kernels)

# A folder of what build_packages name, for arm64. Nothing of it is run while it is made.
arm64_sysroot() {
  local folder=$1 wanted=() package
  for package in "${build_packages[@]}"; do
    case $package in
      # Programs of the build.
      g++ | cmake | ninja-build | ccache | pkg-config | ca-certificates | protobuf-compiler | python3 | python3-venv) ;;
      *) wanted+=("$package") ;;
    esac
  done
  [ "$(cat "$folder.packages" 2>/dev/null)" = "${wanted[*]}" ] && return
  say "Debian's packages for arm64, in $folder"
  rm -rf "$folder" "$folder.packages"
  as_root mmdebstrap --architectures=arm64 --variant=extract --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
    "--include=$(IFS=, && echo "${wanted[*]}")" bookworm "$folder" || return
  # Links from the root on would lead to this machine's files.
  as_root find "$folder" -xdev -type l -lname '/*' -exec sh -c \
    'for link; do ln -sfnr "$0$(readlink "$link")" "$link"; done' "$folder" {} + || return
  echo "${wanted[*]}" >"$folder.packages"
}

test_arm64() {
  local programs=("$@") sysroot=$root/build/arm64-root
  [ ${#programs[@]} -gt 0 ] || programs=("${arm64_programs[@]}")
  install_packages "${arm64_packages[@]}"
  step "the packages for arm64" arm64_sysroot "$sysroot" || return 0
  if [ ! -f build/arm64/build.ninja ]; then
    step "configure build/arm64" cmake --preset release -B build/arm64 --toolchain cmake/aarch64-linux-gnu.cmake "-DPENSTOCK_SYSROOT=$sysroot" \
      -DPENSTOCK_PYTHON=OFF -DPENSTOCK_BENCH=OFF "-DPENSTOCK_PRECOMPILE=${PENSTOCK_PRECOMPILE:-$precompile}" || return 0
  fi
  step "build for arm64" cmake --build build/arm64 --target "${programs[@]}" || return 0
  # As root, and beside others: what qemu-user cannot do is named by its test.
  run_ctest arm64 -R "^($(IFS='|' && echo "${programs[*]}")):"
}
