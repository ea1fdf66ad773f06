#!/bin/sh
# Writes dpkg's lists of the packages that mmdebstrap has unpacked into folder $1 and has not installed: so dpkg-query and dpkg-shlibdeps know
# which package a library is of. A hook of mmdebstrap, run while the archives are still there.
set -e
lists=$1/var/lib/dpkg
control=$(mktemp -d)
trap 'rm -rf "$control"' EXIT
mkdir -p "$lists/info"
for deb in "$1"/var/cache/apt/archives/*.deb; do
  rm -rf "$control" && dpkg-deb --control "$deb" "$control"
  name=$(sed -n 's/^Package: //p' "$control/control")
  if grep -q '^Multi-Arch: same$' "$control/control"; then name=$name:arm64; fi
  { cat "$control/control" && printf 'Status: install ok installed\n\n'; } >>"$lists/status"
  rm "$control/control"
  for file in "$control"/*; do if [ -f "$file" ]; then cp "$file" "$lists/info/$name.${file##*/}"; fi; done
  dpkg-deb --fsys-tarfile "$deb" | tar -t | sed 's|^\.||; s|/$||; s|^$|/.|' >"$lists/info/$name.list"
done
