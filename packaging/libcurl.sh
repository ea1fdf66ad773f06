#!/usr/bin/env bash
# libcurl for the wheel, out of Debian's source: HTTP and HTTPS over OpenSSL, and nothing else (decision 0150).
#
#   packaging/libcurl.sh FOLDER [OPTION...]
#
# makes FOLDER/lib/libcurl.so.4, FOLDER/version and FOLDER/copyright. Does nothing where the newest one is there already. The options go to CMake;
# STRIP names the program for a library of another machine.
#
# The programs are linked with Debian's libcurl; this one has the same name and the same versions of symbols. The source comes by apt, which
# checks Debian's signatures. Needs what `./dev deps` installs, and dpkg-dev.
set -euo pipefail
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Lists of its own: the machine's name no sources, and stay as they are. The user of apt's sandbox may not write here.
mkdir -p "$folder"/apt/{lists/partial,archives/partial}
for suite in "debian bookworm" "debian bookworm-updates" "debian-security bookworm-security"; do
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/$suite main"
done >"$folder/apt/sources.list"
apt_get() {
  apt-get -o APT::Sandbox::User=root -o Dir::Etc::sourcelist="$folder/apt/sources.list" -o Dir::Etc::sourceparts=- \
    -o Dir::State::lists="$folder/apt/lists" -o Dir::Cache="$folder/apt" -q "$@"
}
apt_get update >/dev/null
cd "$folder"
# Where nothing of it lies: what is there already is not printed.
version=$(cd apt && apt_get source --print-uris curl | sed -n 's/.* curl_\(.*\)\.dsc .*/\1/p')
[ -n "$version" ] || { echo "libcurl.sh: apt offers no source of curl" >&2 && exit 1; }
# What it is made of: the source, this file, and the options.
made="$version $(sha256sum <"$here/libcurl.sh") $*"
[ "$(cat made 2>/dev/null)" = "$made" ] && exit
rm -rf made source build lib
apt_get source --download-only curl >/dev/null 2>&1
# The patches for the variants with GnuTLS and NSS are the last two, and change names of files alone.
dpkg-source --extract "curl_$version.dsc" source >/dev/null 2>&1
echo "CURL_OPENSSL_4 { global: curl_*; local: *; };" >symbols.map
cmake -G Ninja -S source -B build -DCMAKE_BUILD_TYPE=Release -DBUILD_CURL_EXE=OFF -DBUILD_TESTING=OFF -DPICKY_COMPILER=OFF -DHTTP_ONLY=ON \
  -DCURL_USE_OPENSSL=ON -DENABLE_THREADED_RESOLVER=ON -DCURL_USE_LIBSSH2=OFF -DCURL_USE_LIBPSL=OFF -DUSE_LIBIDN2=OFF -DUSE_NGHTTP2=OFF \
  -DCURL_ZLIB=OFF -DCURL_DISABLE_NTLM=ON -DCURL_DISABLE_COOKIES=ON -DCURL_DISABLE_NETRC=ON -DCURL_DISABLE_ALTSVC=ON -DCURL_DISABLE_HSTS=ON \
  -DCURL_DISABLE_DOH=ON -DCURL_DISABLE_MIME=ON "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,--version-script=$folder/symbols.map" \
  "-DCMAKE_C_FLAGS=-fstack-protector-strong -D_FORTIFY_SOURCE=2 -DCURL_PATCHSTAMP='\"$version\"'" "$@" >/dev/null
cmake --build build -- -j "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" >build.log || { tail -20 build.log >&2 && exit 1; }
mkdir -p lib
cp build/lib/libcurl.so.4.*.* lib/libcurl.so.4
"${STRIP:-strip}" lib/libcurl.so.4
cp source/debian/copyright copyright
echo "$version" >version
echo "$made" >made
