#!/usr/bin/env bash
# get_list.sh DIR URL CHECKSUMS: fetch each file of CHECKSUMS (lines `SHA-256  path`) from URL/path
# into DIR. An interrupted download goes on where it stopped; what is there already is not fetched
# again; what has another checksum is not kept.
set -euo pipefail
utils=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../../utils" && pwd)
dir=$1 url=$2 sums=$3

mkdir -p "$dir"
while read -r sha256 path; do
  python3 "$utils/fetch.py" "$url/$path" "$dir/${path##*/}" "$sha256"
done <"$sums"
