# shellcheck shell=bash
# arm64, cross-built (packaging/arm64.sh). Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev test arm64 [PROGRAM|cursors]...
#: for arm64, under qemu-user (root): unit tests with the goldens, and cursors that x86-64 left behind; or some of them

# What handles bytes that have to be equal on each machine, the memory that processes share, and loops of other instructions.
arm64_programs=(tests_base tests_ring tests_io tests_codec tests_kernels tests_expr tests_functions_image tests_engine tests_ops)

# Tests that need what qemu-user does not do as Linux does: openat2(), what of a file is in memory, and /proc/self/maps, which it makes itself.
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
    local wanted left_out=() test
    wanted="^($(IFS='|' && echo "${programs[*]}")):"
    for test in "${arm64_not_emulated[@]}"; do [[ ! $test =~ $wanted ]] || left_out+=("$test"); done
    if [ ${#left_out[@]} -gt 0 ]; then
      say "not run, since qemu-user does not do what they need:"
      printf '%s\n' "${left_out[@]}"
      not_run=$((not_run + ${#left_out[@]}))
    fi
    # No name has a sign of a regular expression in it. Without any, "()" would leave out none: each test has a name.
    run_ctest arm64 -R "$wanted" -E "^($(IFS='|' && echo "${left_out[*]}"))\$"
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
