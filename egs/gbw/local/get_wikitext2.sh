#!/usr/bin/env bash
# get_wikitext2.sh DIR [URL [CHECKSUMS]]: fetch WikiText-2 (Merity et al. 2016), tokenised, about 4.5 MB, from URL into DIR.
# The publisher's old address may be gone: URL is any place that has the file under its old name, such as file:///DIR.
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/get_list.sh" "$1" "${2:-https://s3.amazonaws.com/research.metamind.io/wikitext}" "${3:-$here/wikitext2.sha256}"
