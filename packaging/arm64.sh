# shellcheck shell=bash
# What arm64 needs on another machine: Debian's packages for it, its programs cross-built, and its wheel, Debian package and image.
# Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree (decision 0174).
#: ./dev wheel arm64
#: the wheel for arm64, cross-built, and tried by Pythons of arm64 under qemu-user (root)
#: ./dev package arm64
#: the Debian package for arm64, cross-built, and tried under qemu-user (root)

arm64_packages=(g++-aarch64-linux-gnu qemu-user-static mmdebstrap arch-test iproute2)
arm64_root=$root/build/arm64-root
# The Pythons that the wheel for arm64 is made for, and the Debian that each of them is of. No other one can be tried here.
arm64_debians=(3.11:bookworm 3.13:trixie)
# What of build_packages is no library: programs of the build, which are this machine's.
arm64_not_wanted=' g++ cmake ninja-build ccache pkg-config ca-certificates protobuf-compiler python3 python3-venv '
arm64_mirror=http://deb.debian.org/debian

# Processes of arm64 run here, by qemu-user. systemd tells the kernel while it boots; a machine without systemd is told here.
arm64_runs() {
  local names=/proc/sys/fs/binfmt_misc
  [ ! -e $names/qemu-aarch64 ] || return 0
  [ -e $names/register ] || as_root mount -t binfmt_misc binfmt_misc $names || {
    echo "this kernel runs no programs of arm64: it has no binfmt_misc"
    return 1
  }
  as_root sh -c "cat /usr/lib/binfmt.d/qemu-aarch64.conf >$names/register"
}

# A folder of what build_packages name, for arm64. Nothing of it is run while it is made. dpkg's lists are in it, too: they say which package a
# library is of.
arm64_sysroot() {
  local wanted=() package made
  for package in "${build_packages[@]}"; do
    case $arm64_not_wanted in *" $package "*) ;; *) wanted+=("$package") ;; esac
  done
  made="${wanted[*]} $(sha256sum <packaging/arm64_lists.sh)"
  [ "$(cat "$arm64_root.packages" 2>/dev/null)" = "$made" ] && return
  say "Debian's packages for arm64, in $arm64_root"
  as_root rm -rf "$arm64_root" "$arm64_root.packages"
  as_root mmdebstrap --architectures=arm64 --variant=extract --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
    "--include=$(IFS=, && echo "${wanted[*]}")" --extract-hook=packaging/arm64_lists.sh bookworm "$arm64_root" || return
  # qemu-user looks for each path here first, and a folder of temporary files is none of the packages'.
  as_root rmdir "$arm64_root/tmp" || return
  # Links from the root on would lead to this machine's files.
  as_root find "$arm64_root" -xdev -type l -lname '/*' -exec sh -c \
    'for link; do ln -sfnr "$0$(readlink "$link")" "$link"; done' "$arm64_root" {} + || return
  echo "$made" >"$arm64_root.packages"
}

# The headers of Python $1 of Debian $2, beside those of the folder's own Python.
arm64_headers() {
  local minor=$1 debian=$2 folder=$root/build/arm64-headers part
  [ ! -f "$arm64_root/usr/include/python$minor/Python.h" ] || return 0
  say "the headers of Python $minor for arm64"
  as_root rm -rf "$folder"
  as_root mmdebstrap --architectures=arm64 --variant=extract "--include=libpython$minor-dev" "$debian" "$folder" "deb [trusted=yes] $arm64_mirror $debian main" || return
  for part in include include/aarch64-linux-gnu; do as_root cp -r "$folder/usr/$part/python$minor" "$arm64_root/usr/$part" || return; done
  as_root rm -rf "$folder"
}

# What is installed here, and the folder of packages.
arm64_ready() {
  install_packages "${arm64_packages[@]}" && arm64_sysroot || return
  # auditwheel and symbols.py call these by the names that they have for the machine itself.
  mkdir -p build/arm64-tools
  local tool
  for tool in strip objdump; do ln -sf /usr/bin/aarch64-linux-gnu-$tool build/arm64-tools/$tool; done
}

# Runs a command that sees the packages for arm64 as those of Debian that are installed: libraries, terms, and dpkg's lists. Only it sees them.
with_arm64_packages() {
  # A place for them to be seen at.
  [ -d /usr/lib/aarch64-linux-gnu ] || as_root mkdir /usr/lib/aarch64-linux-gnu
  as_root unshare --mount sh -ec '
    mount --bind "$0/usr/lib/aarch64-linux-gnu" /usr/lib/aarch64-linux-gnu
    mount --bind "$0/usr/share/doc" /usr/share/doc
    exec env "$@"' "$arm64_root" DPKG_ADMINDIR="$arm64_root/var/lib/dpkg" DEB_HOST_ARCH=arm64 PATH="$root/build/arm64-tools:$PATH" "$@"
}

# build_arm64 TARGET...
build_arm64() {
  if [ ! -f build/arm64/build.ninja ]; then
    cmake --preset release -B build/arm64 --toolchain cmake/aarch64-linux-gnu.cmake "-DPENSTOCK_SYSROOT=$arm64_root" -DPENSTOCK_BENCH=OFF \
      -DPENSTOCK_PYTHON=ON "-DPython_EXECUTABLE=$root/.venv/bin/python" "-DPENSTOCK_PRECOMPILE=${PENSTOCK_PRECOMPILE:-ON}" || return
  fi
  cmake --build build/arm64 --target "$@"
}

# ---- roots of arm64, whose programs run by qemu-user

# arm64_base ARCHIVE DEBIAN PACKAGE...: a root of arm64 as a tar archive.
arm64_base() {
  local archive=$1 debian=$2
  shift 2
  [ "$(cat "$archive.packages" 2>/dev/null)" = "$debian $*" ] && return
  arm64_runs || return
  say "making $archive, a root of arm64"
  rm -f "$archive"
  as_root mmdebstrap --architectures=arm64 --variant=minbase "--include=$(IFS=, && echo "$*")" "$debian" "$archive" "deb [trusted=yes] $arm64_mirror $debian main" &&
    echo "$debian $*" >"$archive.packages"
}

# Folder $1, anew, with what archive $2 holds.
unpack_root() {
  as_root rm -rf "$1" && mkdir -p "$1" && as_root tar -C "$1" -xf "$2" --numeric-owner --exclude=./dev/*
}

# in_root FOLDER COMMAND: a line of shell in a root, with mounts of its own and no network.
in_root() {
  arm64_runs && as_root unshare --mount --net --pid --fork sh -ec '
    ip link set lo up && mount --bind /dev "$0/dev" && mount -t proc proc "$0/proc" && mount -t tmpfs shm "$0/dev/shm"
    exec chroot "$0" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 /bin/sh -ec "$1"' "$@"
}

# ---- the wheel

# The binding for Python $1 (a program of this machine) of minor version $2, for arm64.
arm64_binding() {
  local python=$1 minor=$2 folder=$root/build/arm64-python-$2
  [ -x "build/python-venvs/$minor/bin/python" ] || "$python" -m venv "build/python-venvs/$minor" || return
  build/python-venvs/"$minor"/bin/python -m pip install --quiet --disable-pip-version-check nanobind "numpy>=2.0" || return
  cmake -G Ninja -S . -B "$folder" --toolchain cmake/aarch64-linux-gnu.cmake "-DPENSTOCK_SYSROOT=$arm64_root" -DCMAKE_BUILD_TYPE=Release \
    -DPENSTOCK_PYTHON=ON "-DPENSTOCK_PYTHON_HEADERS=$arm64_root/usr/include/python$minor" "-DPENSTOCK_PRECOMPILE=${PENSTOCK_PRECOMPILE:-ON}" \
    -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON "-DPython_EXECUTABLE=$root/build/python-venvs/$minor/bin/python" >/dev/null &&
    cmake --build "$folder" --target penstock_python
}

# NumPy for Python $1 of arm64, beside wheel $2: a root installs them without a network.
arm64_wheelhouse() {
  local minor=$1 wheel=$2 folder=build/arm64-wheelhouse platforms=() glibc
  mkdir -p $folder
  rm -f $folder/penstock-*
  cp "$wheel" $folder
  for glibc in manylinux_2_28 manylinux_2_27 manylinux_2_17 manylinux2014; do platforms+=(--platform "${glibc}_aarch64"); done
  .venv/bin/python -m pip download --quiet --disable-pip-version-check --only-binary=:all: --python-version "$minor" "${platforms[@]}" --dest $folder numpy
}

# Installs the wheel by the Python of a root of arm64, which takes batches from a daemon and from a private one: the bytes are those of x86-64.
try_wheel_arm64() {
  local minor=$1 debian=$2 wheel=$3 folder=$root/build/arm64-tried
  arm64_base "$root/build/arm64-$debian.tar" "$debian" python3 python3-venv && arm64_wheelhouse "$minor" "$wheel" && unpack_root "$folder" "$root/build/arm64-$debian.tar" &&
    as_root cp -r build/arm64-wheelhouse "$folder/wheels" && as_root cp tests/support/attach_once.py tests/support/sums_of_batches.py tests/support/sums_of_batches.txt "$folder" &&
    in_root "$folder" 'python3 -m venv /venv && /venv/bin/pip install --no-index --find-links /wheels --quiet penstock &&
      /venv/bin/penstock --version && /venv/bin/python /attach_once.py /venv/bin && /venv/bin/python /sums_of_batches.py' || return
  as_root rm -rf "$folder"
  say "tried with Python $minor of arm64"
}

# As wheel() makes it of this machine's programs.
wheel_arm64() {
  deps
  make_venv build/packaging-venv "${wheel_packages[@]}"
  arm64_ready || return
  local tools=$root/build/packaging-venv/bin made=$root/build/portable-arm64 toolchain=$root/cmake/aarch64-linux-gnu.cmake
  local own pair minor python found bindings=() missing=() bytes
  own=$(minor_of .venv/bin/python)
  as_root rm -rf "$made" && mkdir -p "$made"
  say "programs for arm64, and the binding for Python $own"
  build_arm64 penstockd penstock penstock-samples penstock_python penstock_python_files || return
  _PYTHON_HOST_PLATFORM=linux-aarch64 CMAKE_TOOLCHAIN_FILE=$toolchain .venv/bin/python -m pip wheel --quiet --no-build-isolation --no-deps \
    --disable-pip-version-check -w "$made/plain" --config-settings=build-dir=build/arm64-pip "--config-settings=cmake.define.PENSTOCK_SYSROOT=$arm64_root" \
    "--config-settings=cmake.define.PENSTOCK_PRECOMPILE=${PENSTOCK_PRECOMPILE:-ON}" . || return
  for pair in "${arm64_debians[@]}"; do
    minor=${pair%:*}
    [ "$minor" = "$own" ] && continue
    found=
    while read -r python; do if [ "$(minor_of "$python")" = "$minor" ]; then found=$python; fi; done < <(wheel_pythons)
    [ -n "$found" ] || { missing+=("$minor") && continue; }
    say "the binding for Python $minor of arm64"
    arm64_headers "$minor" "${pair#*:}" && arm64_binding "$found" "$minor" || return
    bindings+=(build/arm64-python-"$minor"/python/penstock/_core.*.so)
  done
  say "libcurl out of Debian's source, without what no request of ours needs"
  install_packages "${packaging_packages[@]}"
  STRIP=aarch64-linux-gnu-strip packaging/libcurl.sh build/arm64-libcurl --toolchain "$toolchain" "-DPENSTOCK_SYSROOT=$arm64_root" || return
  say "one wheel of them"
  "$tools/python" packaging/bindings.py "$made"/plain/*.whl "$made/joined" "${bindings[@]}" || return
  PATH=$tools:$PATH with_arm64_packages AUDITWHEEL_LD_LIBRARY_PATH="$root/build/arm64-libcurl/lib:/usr/lib/aarch64-linux-gnu" \
    "$tools/auditwheel" repair --strip -w "$made/repaired" "$made"/joined/*.whl 2>&1 |
    grep -v '^INFO:auditwheel.repair:' || [ "${PIPESTATUS[0]}" = 0 ] || return
  with_arm64_packages python3 packaging/parts.py "$made"/repaired/*.whl "$made" build/arm64-libcurl || return
  "$tools/python" packaging/smaller.py "$made"/*.whl || return
  PATH=$root/build/arm64-tools:$PATH python3 packaging/symbols.py --check "$made"/*.whl || return
  bytes=$(stat -c %s "$made"/*.whl)
  [ "$bytes" -le $wheel_max_bytes ] || die "the wheel is larger than $wheel_max_bytes bytes: $bytes"
  for pair in "${arm64_debians[@]}"; do
    case " ${missing[*]} " in *" ${pair%:*} "*) continue ;; esac
    try_wheel_arm64 "${pair%:*}" "${pair#*:}" "$made"/*.whl || return
  done
  say "$(ls "$made"/*.whl): $bytes bytes"
  [ ${#missing[@]} = 0 ] || echo "No program of Python ${missing[*]} is here: the wheel has no binding for it. PENSTOCK_PYTHONS names one."
}

# ---- the Debian package

# Prints the path of a Debian package of this tree for arm64, whose programs have run.
package_arm64() {
  { deps && install_packages "${packaging_packages[@]}" && arm64_ready && build_arm64 penstockd penstock penstock-samples penstock_client; } >&2 || return
  as_root rm -rf build/package-arm64
  with_arm64_packages cpack --config build/arm64/CPackConfig.cmake -D CPACK_DEBIAN_PACKAGE_ARCHITECTURE=arm64 -B "$root/build/package-arm64" >&2 || return
  local deb
  deb=$(ls "$root"/build/package-arm64/penstock_*_arm64.deb) && try_package_arm64 "$deb" >&2 && echo "$deb"
}

# build/arm64-base.tar: a root of arm64 with what Debian package $1 depends on, and what its image holds besides.
arm64_base_of() {
  local libraries=()
  read -ra libraries < <(libraries_of "$1")
  arm64_base "$root/build/arm64-base.tar" bookworm "${libraries[@]}" ca-certificates libsndfile1
}

# Installs Debian package $1 in a root of arm64 that has what it depends on; its daemon takes its configuration, and the command reads.
try_package_arm64() {
  local deb=$1 folder=$root/build/arm64-tried
  arm64_base_of "$deb" && unpack_root "$folder" "$root/build/arm64-base.tar" && as_root cp "$deb" "$folder/given.deb" &&
    as_root cp tests/arm64/trial.textproto "$folder" && in_root "$folder" 'dpkg -i /given.deb && penstockd --config /etc/penstock/penstockd.textproto --check-config &&
      penstock make-sample chess --records 20 --out /tmp/chess && penstock run /trial.textproto' || return
  as_root rm -rf "$folder"
  say "tried: $deb"
}
