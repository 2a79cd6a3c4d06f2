#!/bin/sh
# Builds hook.wasm. Needs clang and wasm-ld; on Debian: apt-get install clang lld
set -eu
cd "$(dirname "$0")"
object=$(mktemp)
trap 'rm -f "$object"' EXIT
clang --target=wasm32 -mbulk-memory -O2 -ffreestanding -Wall -Wextra -Werror -c hook.c -o "$object"
wasm-ld --no-entry --strip-all "$object" -o hook.wasm
chmod 644 hook.wasm
