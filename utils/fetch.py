#!/usr/bin/env python3
"""Fetch one file by its public address: continues an interrupted download, tries again, and keeps it only if its SHA-256 is right.

Where nobody publishes a SHA-256 to give here, that of what came first is kept beside the file, in FILE.sha256, and holds from then on.
"""

import argparse
import hashlib
import http.client
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

BLOCK = 1 << 20
REPORT_SECONDS = 10
LASTING = {401, 403, 404, 410}  # statuses that another try does not change


def fetch(url: str, out: Path, sha256: str | None, tries: int = 5, pause: float = 2.0) -> None:
    """Put the content of `url` into `out`; SystemExit with cause and remedy if it cannot be had or is not what was expected."""
    record = out.with_name(f"{out.name}.sha256")
    if sha256 is None and record.exists():
        sha256 = record.read_text().split()[0]
    if out.exists() and digest(out) == sha256:
        print(f"{out} is there already")
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f"{out.name}.part")
    for left in reversed(range(tries)):
        try:
            download(url, part)
            break
        except (OSError, http.client.HTTPException) as error:
            if not left or getattr(error, "code", None) in LASTING:
                sys.exit(f"{url}: {error}; check the address and the network, and run again: what came so far is kept in {part}")
            print(f"{url}: {error}; trying again")
            time.sleep(pause)
    if sha256 is None:
        record.write_text(f"{digest(part)}  {out.name}\n")
    else:
        verify(url, part, sha256)
    os.replace(part, out)


def download(url: str, part: Path) -> None:
    """Append to `part` what it still lacks of `url`; start over if the server cannot continue."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing beyond what we have: it is complete, or wrong, which its hash tells
            return
        raise
    with response, open(part, "ab" if response.status == 206 else "wb") as stream:
        copy(response, stream, url)


def copy(response, stream, url: str) -> None:
    """Copy the body to the end, saying from time to time how far it is; ConnectionError if it ends early."""
    start, length = stream.tell(), int(response.headers.get("Content-Length", 0))
    total, said = start + length, time.monotonic()
    while block := response.read(BLOCK):
        stream.write(block)
        if time.monotonic() - said > REPORT_SECONDS:
            said = time.monotonic()
            print(f"{url}: {stream.tell() / 1e6:,.0f} of {total / 1e6:,.0f} MB", flush=True)
    if length and stream.tell() != total:
        raise ConnectionError(f"the connection ended after {stream.tell()} of {total} bytes")


def verify(url: str, part: Path, sha256: str) -> None:
    """Remove a download whose hash is wrong, and say so."""
    found = digest(part)
    if found != sha256:
        part.unlink()
        sys.exit(f"{url}: its SHA-256 is {found}, expected {sha256}; removed: run again, or ask the publisher what changed")


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    state = hashlib.sha256()
    with open(path, "rb") as stream:
        while block := stream.read(BLOCK):
            state.update(block)
    return state.hexdigest()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("out", type=Path)
    parser.add_argument("sha256", nargs="?")
    called = parser.parse_args()
    fetch(called.url, called.out, called.sha256)
