#!/usr/bin/env python3
"""Fetch one file by its public address: continues an interrupted download, tries again, and keeps
it only if its SHA-256 is right.

Where nobody publishes a SHA-256 to give here, that of what came first is kept beside the file, in
FILE.sha256, and holds from then on.
"""

import argparse
import http.client
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

# lmtools.base.files needs the standard library only, too
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lmtools.base import files
from lmtools.base.atomic import atomic_path
from lmtools.base.errors import UserError, one_line

BLOCK = 1 << 20
REPORT_SECONDS = 10
LASTING = {401, 403, 404, 410}  # statuses that another try does not change


def fetch(url: str, out: Path, sha256: str | None, tries: int = 5, pause: float = 2.0) -> None:
    """Put the content of `url` into `out`; SystemExit with cause and remedy if it cannot be had or
    is not what was expected.
    """
    record = out.with_name(f"{out.name}.sha256")
    if sha256 is None and record.exists():
        sha256 = record.read_text().partition(" ")[0]
    if out.exists() and files.sha256(out) == sha256:
        print(f"{out} is there already")
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f"{out.name}.part")
    for left in reversed(range(tries)):
        try:
            download(url, part, sha256 is not None)
            break
        except UserError as error:
            sys.exit(one_line(error))
        except (OSError, http.client.HTTPException) as error:
            if not left or getattr(error, "code", None) in LASTING:
                sys.exit(
                    f"{url}: {error}; check the address and the network, and run again: what came"
                    f" so far is kept in {part}"
                )
            print(f"{url}: {error}; trying again")
            time.sleep(pause)
    if sha256 is None:
        keep(f"{files.sha256(part)}  {out.name}", record)
    else:
        verify(url, part, sha256)
    version_file(part).unlink(missing_ok=True)
    os.replace(part, out)


def download(url: str, part: Path, checked: bool) -> None:
    """Append to `part` what it still lacks of `url`; start over if the server cannot continue, or
    has another version by now.

    The version is what the server calls it, kept beside `part`. Where it is not known, only a
    download that is `checked` afterwards goes on: nothing else would tell that two halves do not
    belong together.
    """
    version = version_file(part)
    known = version.read_text().strip() if version.exists() else ""
    have = part.stat().st_size if part.exists() and (known or checked) else 0
    request = urllib.request.Request(url)
    if have:
        request.add_header("Range", f"bytes={have}-")
    if have and known:
        request.add_header("If-Range", known)
    try:
        response = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise
        # complete, or wrong, which its hash tells
        if checked or error.headers.get("Content-Range", "").strip() == f"bytes */{have}":
            return
        part.unlink()
        raise ConnectionError("the server has less of it than came before; starting over") from None
    with response:
        if response.status == 206 and not same_file(response, have, known):
            part.unlink()
            raise ConnectionError("the server has another version of it by now; starting over")
        if response.status != 206:
            part.unlink(missing_ok=True)
            keep(version_of(response), version)
        with open(part, "ab", opener=no_link) as stream:
            copy(response, stream, url)


def same_file(response, have: int, known: str) -> bool:
    """Return whether a part goes on at byte `have` of the version that is `known`, as far as the
    server says.
    """
    version, place = version_of(response), response.headers.get("Content-Range", "")
    return not (known and version and version != known) and (
        not place or place.startswith(f"bytes {have}-")
    )


def version_file(part: Path) -> Path:
    """Return where the version of a part is kept."""
    return part.with_name(f"{part.name}.version")


def no_link(path: str, flags: int) -> int:
    """Open a file whose name nobody chose: not through a link."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def keep(text: str, path: Path) -> None:
    """Write a line, whole or not at all."""
    with atomic_path(path, follow=False) as temporary:
        temporary.write_text(f"{text}\n")


def version_of(response) -> str:
    """Return what the server calls this version: a strong ETag, or else the time of its last
    change.
    """
    tag = response.headers.get("ETag", "")
    return response.headers.get("Last-Modified", "") if not tag or tag.startswith("W/") else tag


def copy(response, stream, url: str) -> None:
    """Copy the body to the end, saying from time to time how far it is; ConnectionError if it ends
    early.
    """
    start, length = stream.tell(), int(response.headers.get("Content-Length", 0))
    total, reported = start + length, time.monotonic()
    while block := response.read(BLOCK):
        stream.write(block)
        if time.monotonic() - reported > REPORT_SECONDS:
            reported = time.monotonic()
            print(f"{url}: {stream.tell() / 1e6:,.0f} of {total / 1e6:,.0f} MB", flush=True)
    if length and stream.tell() != total:
        raise ConnectionError(f"the connection ended after {stream.tell()} of {total} bytes")


def verify(url: str, part: Path, sha256: str) -> None:
    """Remove a download whose hash is wrong, and say so."""
    digest = files.sha256(part)
    if digest != sha256:
        part.unlink()
        version_file(part).unlink(missing_ok=True)
        sys.exit(
            f"{url}: its SHA-256 is {digest}, expected {sha256}; removed: run again, or ask the"
            " publisher what changed"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("out", type=Path)
    parser.add_argument("sha256", nargs="?")
    called = parser.parse_args()
    fetch(called.url, called.out, called.sha256)
