#!/bin/bash
# Runs the tests and benchmarks of a CUDA kit (`./dev cuda_kit`) on a machine with a device. Nothing is installed, and no network is needed.
#
#   ./run [tests|bench]... [--out FOLDER] [--python PYTHON] [--seconds S]
#
# Without parts both. PYTHON is one of the version that the kit was made for, with numpy, and with pytest for the tests; torch, jax and cupy are
# used where it has them. What each part printed goes to FOLDER (./results): facts.txt, device.txt, e2e.txt, e2e.xml, bench.jsonl, loops.jsonl,
# summary.txt. Exit code 77: there is no device.
set -uo pipefail
kit=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
parts=() out=$PWD/results python='' seconds=5
while [ $# -gt 0 ]; do
  case $1 in
    tests | bench) parts+=("$1") ;;
    --out) out=$2 && shift ;;
    --python) python=$2 && shift ;;
    --seconds) seconds=$2 && shift ;;
    *) echo "usage: ./run [tests|bench]... [--out FOLDER] [--python PYTHON] [--seconds S]" >&2 && exit 2 ;;
  esac
  shift
done
[ ${#parts[@]} = 0 ] && parts=(tests bench)
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1

# The programs bring every library but the C library, and the C++ one only for machines whose own is older.
failed_to_start() { "$kit/bin/penstockd" --version 2>&1 >/dev/null; }
reason=$(failed_to_start)
if [ -n "$reason" ] && [ ! -e "$kit/lib/libstdc++.so.6" ]; then
  ln -s c++/libstdc++.so.6 c++/libgcc_s.so.1 "$kit/lib/" && reason=$(failed_to_start)
fi
if [ -n "$reason" ]; then
  rm -f "$kit"/lib/{libstdc++.so.6,libgcc_s.so.1}
  echo "NOT RUN, the programs do not start here: $(echo "$reason" | head -1)" | tee "$out/summary.txt"
  exit 1
fi

version=$(ls "$kit/python" | head -1)
for candidate in ${python:-python3 "python$version"}; do
  found=$("$candidate" -c 'import sys, numpy; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) && [ "$found" = "$version" ] &&
    python=$candidate && break
  found=
done
export PYTHONPATH=$kit/python/$version${PYTHONPATH:+:$PYTHONPATH} PENSTOCK_BIN=$kit/bin PENSTOCKD=$kit/bin/penstockd PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
has() { [ -n "$found" ] && "$python" -c "import $1" 2>/dev/null; }

{
  uname -srm
  grep PRETTY_NAME /etc/os-release
  ldd --version 2>/dev/null | head -1
  nproc
  df -h /dev/shm 2>/dev/null
  ls -la /dev/nvidia* 2>/dev/null
  command -v nvidia-smi >/dev/null && nvidia-smi
  for module in numpy pytest torch jax cupy; do
    [ -n "$found" ] && "$python" -c "import $module; print('$module', $module.__version__)" 2>/dev/null
  done
} >"$out/facts.txt" 2>&1

say() { echo "$*" | tee -a "$out/summary.txt"; }
: >"$out/summary.txt"
"$kit/bin/tests_cuda_device" --list-tests >"$out/device.txt" 2>&1
if [ $? = 77 ]; then
  say "$(head -1 "$out/device.txt")"
  exit 77
fi
head -1 "$out/device.txt" | tee -a "$out/summary.txt"
[ -n "$found" ] || say "no Python $version with numpy (--python): what needs it is not run"

status=0
# part NAME SECONDS COMMAND...: into FOLDER/NAME.
part() {
  local name=$1 limit=$2 code=0 start=$SECONDS
  shift 2
  timeout --kill-after=10 "$limit" "$@" >"$out/$name" 2>&1 </dev/null || code=$?
  [ $code = 0 ] || status=1
  say "$name: $([ $code = 0 ] && echo ok || echo "FAILED ($code$([ $code = 124 ] && echo ", out of time"))"), $((SECONDS - start)) s: $(grep -v '^$' "$out/$name" | tail -n 1 | cut -c1-200)"
}

run_tests() {
  ls -la /dev/shm >>"$out/facts.txt" 2>&1
  part device.txt 150 "$kit/bin/tests_cuda_device"
  # Whoever starts this in the background has SIGINT ignored, which processes inherit.
  if has pytest; then
    local options=()
    has xdist && options+=(-n 4)
    has pytest_timeout && options+=(--timeout 60)
    PENSTOCK_TEST_DEVICE=1 part e2e.txt 280 env --default-signal=INT "$python" -m pytest -q -p no:cacheprovider -rfEs --tb=short --durations 8 "${options[@]}" \
      --junitxml "$out/e2e.xml" "$kit/tests/e2e/test_cuda.py" "$kit/tests/e2e/test_cuda_frameworks.py"
  elif [ -n "$found" ]; then
    say "e2e.txt: NOT RUN, $python has no pytest"
  fi
  # What processes that were killed have left there.
  ls -la /dev/shm >>"$out/facts.txt" 2>&1
}

run_bench() {
  part bench.jsonl 100 bash -c 'for one in bench_cuda bench_cuda_handover; do "$0/$one" || exit; done' "$kit/bin"
  [ -n "$found" ] && part loops.jsonl 280 "$python" "$kit/bench/cuda/run.py" --photos "$kit/photos/*.jpg" --seconds "$seconds"
  cat "$out/bench.jsonl" "$out/loops.jsonl" 2>/dev/null | cut -c1-300
}

for one in "${parts[@]}"; do "run_$one"; done
grep -hE '^(FAILED|ERROR|SKIPPED)|^  (huge pages|without the flag|right behind|way [01]|this )' "$out/e2e.txt" "$out/device.txt" 2>/dev/null | head -60
say "$([ $status = 0 ] && echo "all of it: ok" || echo "some of it FAILED"), in $out"
exit $status
