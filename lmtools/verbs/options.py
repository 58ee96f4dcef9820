"""The options that several verbs have, each declared once, and the groups that --help shows."""

from lmtools.base.computing import Computing
from lmtools.base.context import LONGEST, MAX_LINE
from lmtools.base.options import Option, list_options
from lmtools.text.normaliser import CHOICES, NORMALISERS
from lmtools.text.unify import UNIFIERS
from lmtools.text.writing import CASINGS
from lmtools.verbs.help import Rare
from lmtools.verbs.numbers import (
    amount,
    forms,
    from_zero,
    layers,
    metric,
    positive,
    seed,
    shard,
    size,
    weight,
)

POOLS = ("mean", "max", "eos", "cls")  # the names in lmtools.vectors.pooling, which imports torch
WORDS = "words"  # of `lmtools embed`: a vector for each word
WEIGHTS = "weights of scores: NAME=W,... (`words`: a bonus a word), or what `lmtools tune` wrote"
PRESETS = "; ".join(
    f"{name}: {', '.join(getattr(preset, key) for key in CHOICES)}"
    for name, preset in NORMALISERS.items()
    if preset.wordwise
)
LANGUAGES = [name for name in CASINGS if name != "none"]
WHISPERS = ", ".join(name for name, preset in NORMALISERS.items() if not preset.wordwise)


def value(metavar: str | tuple[str, ...] | None, help_text: str, rare=False, **more) -> dict:
    """Return what argparse takes for an option that has a value."""
    return {"metavar": metavar, "help": Rare(help_text) if rare else help_text, **more}


def switch(help_text: str, rare=False) -> dict:
    """Return what argparse takes for an option without a value."""
    return {"action": "store_true", "help": Rare(help_text) if rare else help_text}


def choice(names, help_text: str, rare=False, **more) -> dict:
    """Return what argparse takes for an option that chooses among names."""
    return {"choices": names, "help": Rare(help_text) if rare else help_text, **more}


def flags_of(kind: type) -> dict[str, dict]:
    """Return what argparse takes for the declared options of a dataclass, by flag."""
    return {
        f"--{name.replace('_', '-')}": describe_flag(*declaration)
        for name, declaration in list_options(kind).items()
    }


def describe_flag(kind: type, default, declared: Option) -> dict:
    """Return what argparse takes for a declared option."""
    help_text = declared.help
    if default is not None and kind is not bool and "(default:" not in help_text:
        help_text += " (default: %(default)s)"
    takes = {"help": Rare(help_text) if declared.rare else help_text, "default": default}
    if kind is bool:
        return takes | {"action": "store_true"}
    takes |= {"choices": declared.choices} if declared.choices else {"metavar": declared.metavar}
    return takes | ({"type": NUMBERS[kind, declared.least]} if kind in (int, float) else {})


NUMBERS = {(int, 1): positive, (int, 0): from_zero, (float, 0): amount, (float, None): weight}

# Group, in the order in which --help shows them -> option -> what argparse takes. A verb may change
# what argparse takes; what the option means stays. Options that are `rare` are in --help-all alone.
GROUPS: dict[str, dict[str, dict]] = {
    "options": {
        "--weights": value(
            "W",
            f"{WEIGHTS} (default: those of the lattice's header, as an SLF's lmscale and wdpenalty,"
            " or else 1 for each score)",
        ),
        "--map-words": value(
            "FILE",
            "other words for some, in hypotheses and references once they are normalised: lines"
            " `mr mister`",
            rare=True,
        ),
        "--unify": value(
            "FORM,..",
            "write hypotheses and references in one form of Unicode: "
            + "; ".join(f"{name}: {form.about}" for name, form in UNIFIERS.items()),
            type=forms,
            default=(),
            rare=True,
        ),
        "--metric": value(
            "METRIC", "what is computed (default: %(default)s)", type=metric, default="wer"
        ),
        "--depth": value("N", "of each list, only the first N hypotheses", type=positive),
        "--max-ngram-order": value(
            "N",
            "neural LMs: merge histories of equal last N-1 words (default: none)",
            type=positive,
            rare=True,
        ),
        "--scale": value(
            "X",
            "factor of scores that become probabilities; 0: all alike (default: %(default)s)",
            type=amount,
        ),
        "--states": value(
            "N", "most states of a lattice (default: %(default)s)", type=positive, rare=True
        ),
        "--seed": value(
            "N", "of random draws (default: %(default)s)", type=seed, default=1, rare=True
        ),
        "--licence": value(
            "ID", "the model card's licence of the weights, as apache-2.0", rare=True
        ),
        "--corpus": value("TEXT", "what the model card says of the training text", rare=True),
        "--vocab-size": value("N", "ids in all, five specials included", type=positive),
    },
    "input": {
        "--nbest": value("F", "N-best lists", required=True),
        "--text": value("F", "text, one sentence a line (.gz, .xz; - is standard input)"),
        "--source": value("F", "the sentences that the text is the translation of"),
        "--kaldi": switch(
            "the first word of each line of the text is an utterance id: drop it", rare=True
        ),
        "--subword": value("DIR", "subword model directory, as `lmtools subword` writes it"),
        "--format": value(
            "FMT", "format of the input: NAME or NAME:option=value,... (default: recognised)"
        ),
        "--ref": value("F", "Kaldi text with the references"),
        "--ref-lines": value(
            "F", "plain text with the references, one a line, in the order of", rare=True
        ),
        "--scores": value(
            "NAME=F",
            "a column under a name of your choice: from `lmtools score`, or plain numbers, one a"
            " hypothesis; NAME/token: its mean over tokens, NAME/word: over words",
            nargs="+",
            action="extend",
            default=[],
        ),
        "--phrases": value(
            "F[,OPTION=..]",
            "a glossary, one phrase a line, `PHRASE :WEIGHT | SPOKEN`, or *.jsonl with phrases by"
            " id: the words of a hypothesis that it has are the column `phrases` (see --help-all)",
        ),
        "--words": value(
            "F[,OPTION=..]",
            "a glossary as of --phrases of lmtools tune: error rates of its words and of all"
            " others, recall, precision, false alarms",
        ),
        "--experiment": value(
            "F.yaml",
            "all at once that an experiment's file has for this verb: language models, columns,"
            " systems or vectors; paths have {lm}, {column}, {system} or {vectors} for their names",
            rare=True,
        ),
        "--reverse": switch(
            "p(source | hypothesis), by a model that was trained the other way round", rare=True
        ),
        "--written": switch(
            "score what the recogniser wrote, with case and punctuation, where the lists keep it",
            rare=True,
        ),
        "--against": value("F", "another system: is the difference significant?"),
        "--conf": value("F.yaml", "settings; may name a `base:` file that it refines"),
    },
    "language model": {
        "--lm": value(
            "DIR",
            "model directory, installed model, KenLM or ARPA file, hf:DIR, or mix:LM=W,LM=W, a"
            " mixture; LM,option=value,... gives it options (see --help-all)",
            required=True,
        )
    },
    "sentence vectors": {
        "--layer": value(
            "L",
            "0 (the embedding layer), 1 ..., numbers with commas between them, last or all"
            " (default: last; of words all)",
            type=layers,
            dest="layers",
        ),
        "--pool": choice(
            POOLS,
            "mean or maximum over tokens, the end of sentence (eos) or its beginning (cls)"
            " (default: mean)",
        ),
        "--boundaries": switch(
            "mean and max take the boundary tokens in, as BERT's [CLS] and [SEP]", rare=True
        ),
        "--masked": switch(
            "of masked models: each token's state from a copy in which it alone is masked, one pass"
            " a token (default: the intact input)",
            rare=True,
        ),
    },
    "normaliser": {
        "--normaliser": value(
            "NAME",
            f"a set of these options, default none ({PRESETS}), or Whisper's own ({WHISPERS});"
            " NAME:language=L: upper and lower case as languages of their own rules have them"
            f" ({', '.join(LANGUAGES)})",
        ),
        **{
            f"--{name.replace('_', '-')}": choice(allowed, "default: as the set says", rare=True)
            for name, allowed in CHOICES.items()
        },
    },
    "output": {
        "--out": value("F", "file to write", required=True),
        "--to": value("FMT", "format of the output (default: %(default)s)", default="jsonl"),
        "--text-out": value("F", "Kaldi text of the best paths"),
        "--nbest-out": value("F", "N-best lists"),
        "--nbest-to": value(
            "FMT", "their format (default: %(default)s)", default="jsonl", rare=True
        ),
    },
    "machine": {
        **flags_of(Computing),
        "--cmd": value(
            "CMD",
            "program that runs --nj parts as jobs, as Kaldi's run.pl does: 'utils/slurm.sh --mem"
            " 4G' (default: $LMTOOLS_CMD, or local: processes of this machine)",
            rare=True,
        ),
        "--shard": value(
            "I/N",
            "do the I-th of N parts, for `lmtools merge` to join: OUT.I-of-N",
            type=shard,
            rare=True,
        ),
    },
    "every verb": {
        "--debug": switch("show the traceback of an error", rare=True),
        "--allow-commands": switch(
            "run what lines `key command |` of Kaldi's script files say (default: refuse them)",
            rare=True,
        ),
        "--max-line": value(
            "SIZE",
            "longest line to read, as 500000, 64K, 16M or 2G; a file that is read whole: 16 times"
            f" (default: ${MAX_LINE} or {LONGEST})",
            type=size,
            rare=True,
        ),
    },
}
SEVERAL_TEXTS = {"nargs": "+", "action": "extend"}
SEVERAL_LMS = {"action": "append", "default": [], "required": False, "metavar": "NAME=DIR"}
ENCODER = {
    "metavar": "LM",
    "help": "directory of a neural model, hf:DIR (a Hugging Face model), words:F (word vectors in a"
    " GloVe or word2vec text file, averaged), tfidf (tf-idf counted on the texts themselves) or"
    " tfidf:TEXT",
}
EMBED_POOL = {
    "choices": (*POOLS, WORDS),
    "help": "words, mean or maximum over tokens, the end of sentence (eos) or its beginning (cls)"
    " (default: words for a two-way model, else mean)",
}
COLUMN = ("--reverse", "--written")  # of an experiment's column, beside options of its LM
COMPUTING = ("--device", "--precision", "--engine", "--cache", "--rows")
CLUSTER = ("--nj", "--cmd", "--shard")
