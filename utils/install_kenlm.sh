#!/usr/bin/env bash
# Builds KenLM's build_binary, which `lmtools ngram` makes lm.bin by, and lmplz, which tests and
# benchmarks compare with.
# Usage: utils/install_kenlm.sh [PREFIX]     (default: tools/kenlm; the programs come to PREFIX/bin)
# PYTHON=... names the Python whose pip fetches the source. Running it again does nothing when the
# programs work. INTERPOLATE=ON adds KenLM's interpolate, which needs Eigen (libeigen3-dev).
set -euo pipefail

version=0.3.0
sha256=c4628bb9fb63c8a6f9240035b8b037385cfc404cb72e933cf48878291edac1e8
packages="g++ cmake make libboost-program-options-dev libboost-system-dev libboost-thread-dev\
 libboost-test-dev zlib1g-dev libbz2-dev liblzma-dev"
programs=(lmplz build_binary)
[ "${INTERPOLATE:=OFF}" = OFF ] || { programs+=(interpolate); packages+=" libeigen3-dev"; }
root=$(cd "$(dirname "$0")/.." && pwd)
prefix=${1:-$root/tools/kenlm}
python=${PYTHON:-$(command -v "$root/.venv/bin/python" || echo python3)}

fail() { echo "install_kenlm.sh: $*" >&2; exit 1; }

works() { # lmplz --help exits with 1, so only its words count
  local help
  help=$("$prefix/bin/lmplz" --help 2>&1 || true)
  [ -x "$prefix/bin/build_binary" ] && [ -x "$prefix/bin/${programs[-1]}" ] && [[ $help == *discount_fallback* ]]
}

if works; then
  echo "install_kenlm.sh: $prefix/bin has lmplz and build_binary"
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

has_header() { printf '#include <%s>\nint main() {}\n' "$1" |
  "${CXX:-g++}" -x c++ -fsyntax-only - 2> "$work/header.log"; }

missing=""
for program in "${CXX:-g++}" cmake make; do
  command -v "$program" > /dev/null || missing+=" $program"
done
if [ -z "$missing" ]; then
  for header in boost/program_options.hpp boost/system/error_code.hpp boost/thread.hpp \
    boost/test/unit_test.hpp zlib.h; do
    has_header "$header" || missing+=" $header"
  done
fi
[ -z "$missing" ] || fail "missing:$missing; on Debian install them with: apt-get install $packages"

echo "install_kenlm.sh: fetching and building KenLM $version (about two minutes)"
echo "kenlm==$version --hash=sha256:$sha256" > "$work/requirements.txt"
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary kenlm \
  --require-hashes --requirement "$work/requirements.txt" --dest "$work" ||
  fail "cannot fetch KenLM's source; check the network and pip"
tar -xzf "$work/kenlm-$version.tar.gz" -C "$work"
log=$prefix/build.log
mkdir -p "$prefix/bin"
{
  cmake -S "$work/kenlm-$version" -B "$work/build" -DCMAKE_BUILD_TYPE=Release \
    -DENABLE_INTERPOLATE="$INTERPOLATE" -DBUILD_TESTING=OFF
  cmake --build "$work/build" --target "${programs[@]}" --parallel "${NJ:-2}"
} > "$log" 2>&1 || { tail -n 5 "$log" >&2; fail "the build failed; $log tells why"; }
for program in "${programs[@]}"; do
  cp "$work/build/bin/$program" "$prefix/bin/.$program.new"
  mv "$prefix/bin/.$program.new" "$prefix/bin/$program"
done
works || fail "$prefix/bin/lmplz does not run; $log tells how it was built"
echo "install_kenlm.sh: wrote $prefix/bin/lmplz and $prefix/bin/build_binary"
