#!/usr/bin/env bash
# get_gbw.sh DIR [URL [CHECKSUMS]]: fetch the One Billion Word benchmark (Chelba et al. 2013), 1.8
# GB, from URL into DIR. The checksum is the one that TensorFlow Datasets has for it. What is there
# already is not fetched again.
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/get_list.sh" "$1" "${2:-https://www.statmt.org/lm-benchmark}" "${3:-$here/gbw.sha256}"
