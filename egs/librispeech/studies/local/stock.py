#!/usr/bin/env python3
"""stock.py MODEL AUDIO OUT: what faster-whisper's `transcribe(beam_size=5)` writes of AUDIO/*.flac
by each setting that changes it, as Kaldi text OUT/SETTING.txt; one thread.

`lmtools evaluate --ref LISTS --hyp OUT/SETTING.txt` gives the WER.
"""

import sys
import time
from pathlib import Path

from faster_whisper import WhisperModel

from lmtools.base.atomic import atomic_text

# of the model, and of `transcribe`
SETTINGS = {
    "as-it-is": ("int8", {}),
    "temperature-0": ("int8", {"language": "en", "temperature": 0}),
}


def main(directory: str, audio: str, out: str) -> None:
    """Transcribe by each setting and say what it took."""
    recordings = sorted(Path(audio).glob("*.flac"))
    for name, (precision, options) in SETTINGS.items():
        begin = time.process_time()
        model = WhisperModel(directory, compute_type=precision, cpu_threads=1)
        with atomic_text(Path(out, f"{name}.txt")) as file:
            for path in recordings:
                segments, _ = model.transcribe(str(path), beam_size=5, **options)
                text = " ".join("".join(segment.text for segment in segments).split())
                print(path.stem, text, file=file, flush=True)
        print(f"{name}: {time.process_time() - begin:.0f} s of processor time", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
