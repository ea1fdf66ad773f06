# shellcheck shell=bash
# Benchmarks. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev bench peers [--quick] [--cases A,B]
#: Penstock, TensorFlow, torch and a bare loop side by side, one JSON line a case
#: ./dev bench builds --before TREE [--cases A,B] [--pairs N]
#: this build beside that of another checkout, by turns in short windows: what a change costs
#: ./dev bench engine [--quick] [--cases A,B]
#: reading, ordering and resuming, beside a bare loop, tf.data and ISA-L
#: ./dev bench control [--quick] [--cases A,B]
#: what watching, a flood of calls, a profile and the status page cost, whether the what-if comes true, and what autotune brings
#: ./dev bench ring [--quick] [--cases A,B]
#: hand-over, waking, broadcast, attaching, a daemon's return
#: ./dev bench cuda [--seconds S]
#: copies from the ring to a CUDA device, the device's ring, kernels, and a training loop beside torch and DALI
#: ./dev bench effects [--quick] [--cases A,B]
#: what each lever of tf.data's performance guide does, there and here
#: ./dev bench functions [--quick] [--cases A,B]
#: what functions of images and arrays cost beside TensorFlow's
#: ./dev bench augment [--quick] [--cases A,B]
#: what augmenting images costs beside torchvision and Pillow
#: ./dev bench python [--quick] [--cases A,B] [--peers A,B] [--workers 1,2]
#: what Python functions and Datasets in worker processes cost, beside torch's DataLoader, Grain, tf.data and a loop
#: ./dev bench text [--quick] [--cases A,B]
#: text for language models: tokenising beside tiktoken and tokenizers, JSON lines beside simdjson's bare loop, packing beside Grain's, resuming, and
#: all of it from files to sequences
#: ./dev bench hosts [--quick] [--cases A,B]
#: what a host of eight costs beside one alone: processor time a row, bytes read; changing their number beside resuming; and what a step of a
#: helper costs on its way
#: ./dev bench remote [--quick] [--cases A,B]
#: files over HTTP beside a bare loop of libcurl and Arrow's S3 client, with TLS, latency, stalls and a cache folder (Debian: nginx libnginx-mod-http-lua openssl);
#: out of a bucket beside local files, DALI and gfile (Debian: radosgw ceph-mon ceph-osd ceph-common)
#: ./dev bench formats [--quick] [--cases A,B]
#: Arrow files, tars, Parquet, source processes and sounds, beside the packages that read them
#: ./dev bench NAME
#: one program of bench/ (kernels: expressions against hand-written loops and NumPy)
#: ./dev photos
#: the photographs for `penstock make-sample flowers`

photo_package=lomiri-wallpapers-16.04

bench_python_packages=(numpy tensorflow-cpu torch pillow)
torchvision_python_packages=(numpy pillow torchvision)
grain_python_packages=(grain pillow)
formats_python_packages=(numpy pyarrow datasets torch webdataset grain soundfile)
remote_python_packages=(pyarrow boto3)
dali_python_packages=(numpy nvidia-dali-cuda120)

# Prints the pattern of the photographs from which flowers are made. They come inside a package of wallpapers, which is unpacked
# into samples/ unless it is installed.
photos() {
  local inside=usr/share/backgrounds
  if installed $photo_package; then
    echo "/$inside/*.jpg"
    return
  fi
  local folder=samples/photos
  if [ ! -d $folder/$inside ]; then
    say "unpacking the photographs of Debian's $photo_package into $folder" >&2
    mkdir -p $folder
    if ! (cd $folder && apt-get -o APT::Sandbox::User=root download -q $photo_package) >&2; then
      as_root apt-get update -q >&2
      (cd $folder && apt-get -o APT::Sandbox::User=root download -q $photo_package) >&2
    fi
    dpkg-deb -x $folder/$photo_package*.deb $folder
    rm $folder/$photo_package*.deb
  fi
  echo "$root/$folder/$inside/*.jpg"
}

# The environment that runs the peers: given, or made here.
peers_python() {
  photos >/dev/null
  [ -n "${PENSTOCK_BENCH_TF_PYTHON-}" ] && [ -n "${PENSTOCK_BENCH_TORCH_PYTHON-}" ] && return
  make_venv build/bench-venv "${bench_python_packages[@]}"
}
tensorflow() { echo "${PENSTOCK_BENCH_TF_PYTHON:-build/bench-venv/bin/python}"; }
torch() { echo "${PENSTOCK_BENCH_TORCH_PYTHON:-build/bench-venv/bin/python}"; }

bench_peers() {
  deps >&2
  peers_python >&2
  # A gigabyte that only this comparison needs.
  [ -n "${PENSTOCK_BENCH_DALI_PYTHON-}" ] || make_venv build/dali-venv "${dali_python_packages[@]}" >&2
  build release >&2
  local photographs
  photographs=$(photos)
  with_python .venv/bin/python bench/peers/run.py --photos "$photographs" --tf-python "$(tensorflow)" --torch-python "$(torch)" \
    --dali-python "${PENSTOCK_BENCH_DALI_PYTHON:-build/dali-venv/bin/python}" "$@"
}

bench_builds() {
  deps >&2
  build release >&2
  local photographs
  photographs=$(photos)
  with_python .venv/bin/python bench/peers/builds.py --photos "$photographs" "$@"
}

# Of the peers' environment only TensorFlow is needed.
with_tensorflow() {
  local what=$1
  shift
  deps >&2
  [ -n "${PENSTOCK_BENCH_TF_PYTHON-}" ] || peers_python >&2
  build release >&2
  with_python .venv/bin/python "bench/$what/run.py" --tf-python "$(tensorflow)" "$@"
}

bench_effects() { with_tensorflow effects "$@"; }
bench_functions() { with_tensorflow functions "$@"; }
bench_engine() { with_tensorflow engine "$@"; }

bench_augment() {
  deps >&2
  [ -n "${PENSTOCK_BENCH_TORCHVISION_PYTHON-}" ] || make_venv build/torchvision-venv "${torchvision_python_packages[@]}" >&2
  build release >&2
  with_python .venv/bin/python bench/augment/run.py \
    --torch-python "${PENSTOCK_BENCH_TORCHVISION_PYTHON:-build/torchvision-venv/bin/python}" "$@"
}

bench_python() {
  deps >&2
  peers_python >&2
  [ -n "${PENSTOCK_BENCH_GRAIN_PYTHON-}" ] || make_venv build/grain-venv "${grain_python_packages[@]}" >&2
  build release >&2
  with_python .venv/bin/python bench/python/run.py --torch-python "$(torch)" --tf-python "$(tensorflow)" \
    --grain-python "${PENSTOCK_BENCH_GRAIN_PYTHON:-build/grain-venv/bin/python}" "$@"
}

bench_text() {
  deps >&2
  [ -n "${PENSTOCK_BENCH_TEXT_PYTHON-}" ] || make_venv build/text-venv tokenizers==0.23.3 tiktoken==0.14.0 numpy grain >&2
  [ -n "${PENSTOCK_BENCH_ZEPHON_PYTHON-}" ] || make_venv build/zephon-venv zephon==0.2.0 tokenizers==0.23.3 transformers >&2
  build release >&2
  with_python .venv/bin/python bench/text/run.py "$@"
}

bench_hosts() {
  deps >&2
  build release >&2
  local photographs
  photographs=$(photos)
  with_python .venv/bin/python bench/hosts/run.py --photos "$photographs" "$@"
}

bench_remote() {
  deps >&2
  make_venv build/remote-bench-venv "${remote_python_packages[@]}" >&2
  peers_python >&2
  [ -n "${PENSTOCK_BENCH_DALI_PYTHON-}" ] || make_venv build/dali-venv "${dali_python_packages[@]}" >&2
  build release >&2
  local photographs
  photographs=$(photos)
  with_python .venv/bin/python bench/remote/run.py --arrow-python build/remote-bench-venv/bin/python --photos "$photographs" \
    --dali-python "${PENSTOCK_BENCH_DALI_PYTHON:-build/dali-venv/bin/python}" --tf-python "$(tensorflow)" "$@"
}

bench_formats() {
  deps >&2
  local python=${PENSTOCK_BENCH_FORMATS_PYTHON-}
  if [ -z "$python" ]; then
    make_venv build/formats-venv "${formats_python_packages[@]}" >&2
    python=build/formats-venv/bin/python
  fi
  build release >&2
  with_python .venv/bin/python bench/formats/run.py --peer-python "$python" "$@"
}

bench_control() {
  deps >&2
  build release >&2
  with_python .venv/bin/python bench/control/run.py "$@"
}

bench_ring() {
  deps >&2
  peers_python >&2
  build release >&2
  local photographs
  photographs=$(photos)
  with_python .venv/bin/python bench/ring/run.py --torch-python "$(torch)" --tf-python "$(tensorflow)" --photos "$photographs" "$@"
}

bench_cuda() {
  if [ -n "${PENSTOCK_CUDA_KIT-}" ]; then
    local kit
    kit=$(unpacked_kit) || exit
    # 77: it has said that there is no device.
    "$kit/run" bench --out "$results/cuda-bench" "$@" || [ $? = 77 ]
    return
  fi
  deps >&2
  build release >&2
  build/release/bin/bench_cuda
  build/release/bin/bench_cuda_handover
  local python=${PENSTOCK_BENCH_TORCH_PYTHON-}
  [ -n "$python" ] || python=.venv/bin/python
  # Photographs are fetched only for a device to work on.
  local photographs=()
  [ -n "$(no_device)" ] || photographs=(--photos "$(photos)")
  with_python "$python" bench/cuda/run.py "${photographs[@]}" "$@"
}

bench_kernels() {
  deps >&2
  build release >&2
  .venv/bin/python bench/kernels.py build/release/bin/bench_kernels "$@"
}

# The names of the functions above.
bench_names() { declare -F | sed -n 's/^declare -f bench_//p' | grep -vx 'names\|program' | tr '\n' ' '; }

# One program of bench/, or what there is.
bench_program() {
  deps >&2
  build release >&2
  local what=${1-} programs=(build/release/bin/bench_*)
  shift || true
  if [ -z "$what" ]; then
    echo "./dev bench NAME [--quick] [--cases A,B], where NAME is one of: $(bench_names)"
    echo "or one of these programs:"
    printf '  ./dev bench %s\n' "${programs[@]##*/bench_}"
    return
  fi
  [ -x "build/release/bin/bench_$what" ] || die "no such benchmark: $what. There are: $(bench_names)${programs[*]##*/bench_}"
  "build/release/bin/bench_$what" "$@"
}

bench() {
  local what=${1-}
  if [ -n "$what" ] && [ "$what" != names ] && [ "$what" != program ] && declare -F "bench_$what" >/dev/null; then
    shift
    "bench_$what" "$@"
  else
    bench_program "$@"
  fi
}
