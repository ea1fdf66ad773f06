# shellcheck shell=bash
# CUDA: on a device, with its compiler, and as a kit for another machine. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev test cuda
#: rings on a CUDA device and copies to it; says so and runs nothing where there is none (PENSTOCK_CUDA_KIT=ARCHIVE:
#:  with the programs of a kit, on a machine that cannot build; also ./dev bench cuda)
#: ./dev test cuda_toolkit
#: CUDA's kernels and declarations with NVIDIA's compiler and headers; needs no device
#: ./dev cuda_kit
#: an archive that runs the CUDA tests and benchmarks on a machine without a network or Debian

# NVIDIA's compiler, and its declarations of the driver.
cuda_packages=(nvidia-cuda-nvcc nvidia-cuda-crt nvidia-cuda-runtime)

# Says why there is no CUDA device; nothing where there is one.
no_device() {
  with_python .venv/bin/python -c 'import penstock.cuda
try:
    penstock.cuda.open(0)
except Exception as error:
    print(error)'
}

# Unpacks the kit of PENSTOCK_CUDA_KIT (`./dev cuda_kit`: its archive, or the folder in it), and prints where it lies. With one, nothing is
# installed or built.
unpacked_kit() {
  local kit=$PENSTOCK_CUDA_KIT folder=build/cuda-kit/unpacked
  if [ -f "$kit" ]; then
    rm -rf $folder && mkdir -p $folder && tar -xzf "$kit" -C $folder || return
    kit=$folder/penstock-cuda-kit
  fi
  [ -x "$kit/run" ] || die "there is no kit at PENSTOCK_CUDA_KIT=$PENSTOCK_CUDA_KIT"
  echo "$kit"
}

cuda_of_kit() {
  local kit out=$results/cuda status=0
  kit=$(unpacked_kit) || exit
  rm -rf "$out"
  "$kit/run" tests --out "$out" || status=$?
  if [ $status = 77 ]; then
    not_run=$((not_run + 1))
    return 0
  fi
  if grep -q '^device.txt: ok' "$out/summary.txt"; then passed=$((passed + 1)); fi
  counting_python=python3 count "$out/e2e.xml" $status
}

# Rings on a device and copies to it, on a device. Where there is none nothing is run, and that is said; the same tests run in
# `./dev test python` over a driver that needs no device.
test_cuda() {
  if [ -n "${PENSTOCK_CUDA_KIT-}" ]; then
    cuda_of_kit
    return
  fi
  step "build" build release || return 0
  local reason
  reason=$(no_device)
  if [ -n "$reason" ]; then
    say "cuda: NOT RUN, no device: $reason"
    not_run=$((not_run + 1))
    return 0
  fi
  say "tests_cuda_device"
  if step "tests_cuda_device" build/release/bin/tests_cuda_device; then passed=$((passed + 1)); fi
  PENSTOCK_TEST_DEVICE=1 run_pytest_of "${PENSTOCK_FRAMEWORKS_PYTHON-.venv/bin/python}" tests/e2e/test_cuda.py tests/e2e/test_cuda_frameworks.py
}

# The kernels as NVIDIA's compiler takes them, and the driver's functions as its headers declare them. No device is needed.
test_cuda_toolkit() {
  make_venv build/cuda-venv "${cuda_packages[@]}"
  local toolkit target
  toolkit=$(echo "$root"/build/cuda-venv/lib/python3*/site-packages/nvidia/cu[0-9]*)
  step "configure build/cuda-toolkit" cmake --preset release -B build/cuda-toolkit -DPENSTOCK_CUDA=ON "-DPENSTOCK_NVCC=$toolkit/bin/nvcc" \
    "-DPENSTOCK_CUDA_INCLUDE=$toolkit/include" -DPENSTOCK_PYTHON=OFF -DPENSTOCK_TESTS=ON -DPENSTOCK_BENCH=OFF || return 0
  for target in cuda/expand.fatbin tests/cuda/CMakeFiles/tests_cuda.dir/driver_test.cc.o; do
    if step "$target" ninja -C build/cuda-toolkit "$target"; then passed=$((passed + 1)); fi
  done
}

# copy_program TARGET FOLDER: stripped, with its libraries to be found in ../lib, and those beside it save what each machine has: the C
# library, and, for machines whose own is older, the C++ one.
copy_program() {
  local from=build/release/bin/$1 kit=$2 library
  cp "$from" "$kit/bin/" && strip "$kit/bin/$1"
  patchelf --force-rpath --set-rpath '$ORIGIN/../lib' "$kit/bin/$1"
  ldd "$from" | sed -n 's|.* => \(/[^ ]*\) .*|\1|p' | while read -r library; do
    case ${library##*/} in
      libc.so.* | libm.so.* | libdl.so.* | librt.so.* | libpthread.so.* | libresolv.so.* | ld-linux*) ;;
      libstdc++.so.* | libgcc_s.so.*) cp -Ln "$library" "$kit/lib/c++/" ;;
      libpenstock.so.*) ;;
      *) cp -Ln "$library" "$kit/lib/" ;;
    esac
  done
}

# Everything that the tests and benchmarks on a CUDA device need, in one archive, for a machine that has a device and neither a network nor
# Debian 12.
cuda_kit() {
  local python=${PENSTOCK_KIT_PYTHON-python3.12} version kit=$root/build/cuda-kit/penstock-cuda-kit venv=$root/build/cuda-kit/venv program
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') ||
    die "cuda_kit needs the Python that the other machine has, with its headers: python3.12, or that of PENSTOCK_KIT_PYTHON"
  local programs=(penstockd penstock penstock-samples bench_cuda bench_cuda_handover tests_cuda_device device_trainer)
  install_packages patchelf
  build release "${programs[@]}" penstock_client fake_cuda cuda_by_handles
  grep -q 'PENSTOCK_CUDA:BOOL=ON' build/release/CMakeCache.txt ||
    say "there is no nvcc: the kit's daemon has no kernels, and what needs them is not tried"
  [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check 'numpy>=2' nanobind
  say "building the package for Python $version"
  [ -f build/cuda-kit/python/build.ninja ] ||
    cmake --preset release -B build/cuda-kit/python -DPENSTOCK_PYTHON=ON -DPENSTOCK_TESTS=OFF -DPENSTOCK_BENCH=OFF "-DPython_EXECUTABLE=$venv/bin/python"
  fixed_addresses cmake --build build/cuda-kit/python --target penstock_python penstock_python_files
  say "putting it together"
  rm -rf "$kit" && mkdir -p "$kit"/{bin,lib/c++,tests,bench/cuda,photos,"python/$version"}
  for program in "${programs[@]}"; do copy_program "$program" "$kit"; done
  cp -L build/release/lib/libpenstock.so.1 build/release/lib/lib{fake_cuda,cuda_by_handles}.so "$kit/lib/"
  cp -r build/cuda-kit/python/python/penstock "$kit/python/$version/"
  cp -L build/release/lib/libpenstock.so.1 "$kit/python/$version/penstock/"
  strip --strip-unneeded "$kit"/lib/*.so* "$kit/python/$version/penstock"/*.so*
  patchelf --set-rpath '$ORIGIN:$ORIGIN/../../../lib' "$kit/python/$version/penstock"/_core*.so
  cp -r --parents tests/e2e/{conftest,programs,tfrecord_files,test_cuda,test_cuda_frameworks}.py bench/cuda/*.py "$kit/"
  cp tests/cuda/device/kit_run.sh "$kit/run"
  # The five smallest are enough, and flowers are made of them where they are needed.
  compgen -G "$(photos)" | xargs ls -Sr | head -5 | xargs -I{} cp {} "$kit/photos/"
  tar -C "$root/build/cuda-kit" -czf "$kit.tar.gz" penstock-cuda-kit
  say "$kit.tar.gz, $(($(stat -c %s "$kit.tar.gz") >> 20)) MiB, for Python $version: unpack it there, and ./run"
}
