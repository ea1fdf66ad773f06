# shellcheck shell=bash
# Fuzz targets. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev test fuzz [TARGET...]
#: libFuzzer targets of tests/fuzz, FUZZ_SECONDS (60) each; installs clang

# libFuzzer comes with clang's run-time library.
fuzz_packages=(clang libclang-rt-14-dev)

# Whether library $1 tells libFuzzer where its inputs lead: without that a target runs, and finds next to nothing.
instrumented() { nm "$1" 2>/dev/null | grep -c __sanitizer_cov >/dev/null; }

# Each libFuzzer target of tests/fuzz for FUZZ_SECONDS (60), from the stored corpora. What is found stays in build/fuzz/found.
# `./dev test fuzz jpeg png` runs those alone.
test_fuzz() {
  install_packages "${fuzz_packages[@]}"
  if [ ! -f build/fuzz/build.ninja ]; then
    step "configure for fuzzing" cmake -S . -B build/fuzz -G Ninja -DPENSTOCK_FUZZ=ON -DPENSTOCK_TESTS=ON -DCMAKE_CXX_COMPILER=clang++ \
      -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=RelWithDebInfo -DPENSTOCK_SANITIZE=address,undefined || return 0
  fi
  local names=("$@") name source
  if [ ${#names[@]} = 0 ]; then
    for source in tests/fuzz/*_fuzz.cc; do names+=("$(basename "$source" _fuzz.cc)"); done
  fi
  step "build the fuzz targets" fixed_addresses cmake --build build/fuzz --target "${names[@]/#/fuzz_}" || return 0
  step "coverage in the libraries" instrumented build/fuzz/io/libpenstock_io.a || return 0
  for name in "${names[@]}"; do
    local corpus=build/fuzz/corpus/$name seeds=()
    mkdir -p "$corpus" build/fuzz/found
    [ -d "tests/fuzz/corpus/$name" ] && seeds+=("tests/fuzz/corpus/$name")
    case $name in jpeg | png) seeds+=(tests/golden/images) ;; esac
    say "fuzz_$name, ${FUZZ_SECONDS-60} s"
    if step "fuzz_$name" fixed_addresses "build/fuzz/bin/fuzz_$name" -max_total_time="${FUZZ_SECONDS-60}" -timeout=25 -rss_limit_mb=4096 \
      -print_final_stats=1 -verbosity=0 -artifact_prefix="build/fuzz/found/$name-" "$corpus" "${seeds[@]}"; then
      passed=$((passed + 1))
    fi
  done
}
