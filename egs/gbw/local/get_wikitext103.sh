#!/usr/bin/env bash
# get_wikitext103.sh DIR [URL [CHECKSUMS]]: fetch WikiText-103 (Merity et al. 2016), tokenised,
# about 190 MB, from URL into DIR. The first author's address, as the publisher's old one
# (s3.amazonaws.com/research.metamind.io/wikitext) is closed; URL is any place that has the file
# under its name, such as file:///DIR.
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/get_list.sh" "$1" "${2:-https://wikitext.smerity.com}" "${3:-$here/wikitext103.sha256}"
