#!/bin/bash
# Writes the first message of a client of the ring's ABI 3, made by its own code out of the history:
#
#   tests/golden/make_old_hello.sh > tests/golden/hello_abi_3.hex
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
# The last commit before ABI 4.
commit=$(git log --format=%h -G'kAbiVersion = 4' --reverse -- ring/layout.h | head -1)^
git archive "$commit" ring | tar -x -C "$folder"
grep -q 'kAbiVersion = 3' "$folder/ring/layout.h"
cat >"$folder/hello.cc" <<'END'
#include <cstdio>

#include "ring/attach.h"
int main() {
  const auto request = penstock::ring::EncodeRequest("chess", "eval");
  std::fwrite(&request, sizeof request, 1, stdout);
}
END
g++ -std=c++20 -I"$folder" "$folder/hello.cc" "$folder/ring/attach.cc" -Wl,--unresolved-symbols=ignore-all -o "$folder/hello"
"$folder/hello" | od -An -v -tx1 -w48 | tr -d ' '
