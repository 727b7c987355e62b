#!/usr/bin/env bash
# Formats the C and C++ sources in place; with --check changes nothing and fails where a file would change.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

folders=(include lib topology transports tools tests examples)
case "${1:-}" in
  '') mode=(-i) ;;
  --check) mode=(--dry-run -Werror) ;;
  *) die "unknown argument \"$1\"; usage: tools/format.sh [--check]" ;;
esac
command -v clang-format >/dev/null || die "clang-format is missing; install the packages of tools/packages.txt"
find "${folders[@]}" -type f \( -name '*.hpp' -o -name '*.cpp' -o -name '*.h' -o -name '*.c' \) -print0 |
  xargs -0 -P "$(nproc)" -n 16 clang-format "${mode[@]}"
