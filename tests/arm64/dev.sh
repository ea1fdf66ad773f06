# shellcheck shell=bash
# arm64, cross-built (packaging/arm64.sh). Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev test arm64 [PROGRAM|cursors]...
#: for arm64, under qemu-user (root): unit tests with the goldens, and cursors that x86-64 left behind; or some of them

# What handles bytes that have to be equal on each machine, the memory that processes share, and loops of other instructions.
arm64_programs=(tests_base tests_ring tests_io tests_codec tests_kernels tests_expr tests_functions_image tests_engine tests_ops)

# Tests of system calls that qemu-user has not: openat2(), mincore(), and preadv2() that does not wait. And of /proc/self/maps, which it makes itself.
arm64_not_emulated=(
  'tests_base:A path that is there is taken for itself, and only others for globs'
  'tests_base:Braces are a choice, as in a shell, but in the name of what is there'
  'tests_base:fault 55: links that lead in a circle are an error with the path'
  'tests_base:fault 55: nothing outside of the root is opened'
  'tests_base:globs list the root and follow no link out of it'
  "tests_base:the kernel's files and devices are never read, with and without roots"
  'tests_base:a look at a file says what opening it says'
  'tests_engine:A kept map of a file whose pages are not told of knows what is in memory'
)

test_arm64() {
  local parts=("$@") programs=() part cursors=
  [ ${#parts[@]} -gt 0 ] || parts=("${arm64_programs[@]}" cursors)
  for part in "${parts[@]}"; do if [ "$part" = cursors ]; then cursors=yes; else programs+=("$part"); fi; done
  step "the packages for arm64" arm64_ready || return 0
  if [ ${#programs[@]} -gt 0 ]; then
    step "build for arm64" build_arm64 "${programs[@]}" || return 0
    say "not run, since qemu-user lacks a system call:"
    printf '%s\n' "${arm64_not_emulated[@]}"
    not_run=$((not_run + ${#arm64_not_emulated[@]}))
    # As root, and beside others.
    run_ctest arm64 -R "^($(IFS='|' && echo "${programs[*]}")):" -E "^($(printf '%s\n' "${arm64_not_emulated[@]}" | sed 's/[][().*+?|]/\\&/g' | paste -sd '|'))\$"
  fi
  [ -z "$cursors" ] || cursors_arm64
}

# What releases left behind on x86-64, and programs of arm64: cursors go on with the same bytes, caches, indices, state folders and saved datasets are
# read. The tests and their client are of this machine; it shares memory with a daemon of arm64.
cursors_arm64() {
  step "programs of arm64 run here" arm64_runs && step "build for arm64" build_arm64 penstockd penstock &&
    step "the client" build release penstock_python penstock_python_files || return 0
  local programs_folder=$root/build/arm64/bin
  QEMU_LD_PREFIX=$arm64_root run_pytest tests/compatibility
}
