"""What the actions on networks share."""

import math
from collections.abc import Iterable, Mapping

from lmtools.base.errors import UserError
from lmtools.evaluate import oracle
from lmtools.evaluate.show import NONE
from lmtools.evaluate.word_confidence import JudgedWords, judge_words
from lmtools.formats import networks as network_files
from lmtools.formats.lattices import LATTICES
from lmtools.formats.networks import NETWORKS
from lmtools.formats.registry import find_format
from lmtools.formats.texts import read_texts
from lmtools.lattice.networks import as_lattice
from lmtools.rescoring.calibration import Calibration, load_calibration
from lmtools.types import ConfusionNetwork

FORMATS = f"{', '.join(NETWORKS)}, or a format of lattices ({', '.join(LATTICES)})"


def add_calibration(parser) -> None:
    """Declare --calibration."""
    help_text = "what `lmtools network calibrate` wrote: confidences become probabilities"
    parser.add_argument("--calibration", metavar="F.json", help=help_text)


def read_calibration(args) -> Calibration | None:
    """Return the calibration that the options name."""
    return load_calibration(args.calibration) if args.calibration else None


def write_networks(networks: Iterable[ConfusionNetwork], path, spec: str) -> int:
    """Write networks one by one, in a format of networks or as lattices; return how many."""
    name, written = spec.partition(":")[0], [0]
    if name not in NETWORKS and name not in LATTICES:
        raise UserError(f"--to {spec}: no such format; give {FORMATS}")

    def counted():
        for network in networks:
            written[0] += 1
            yield network

    if name in NETWORKS:
        find_format(spec, NETWORKS).write(counted(), path)
    else:
        find_format(spec, LATTICES).write(map(as_lattice, counted()), path)
    return written[0]


def refs_of(
    networks: Iterable[ConfusionNetwork], given: Mapping[str, str] | None, path
) -> dict[str, str]:
    """Return the reference of each network: of those `given`, read from `path`, else its own;
    UserError where one has none.
    """
    refs = {}
    for network in networks:
        ref = network.ref if given is None else given.get(network.utt)
        if ref is None:
            raise UserError(f"{path}: no reference of utterance {network.utt!r}; give --ref")
        refs[network.utt] = ref
    return refs


def judge_file(
    path, ref, networks: Iterable[ConfusionNetwork] | None = None, refs=None
) -> tuple[JudgedWords, list[ConfusionNetwork], dict[str, str]]:
    """Return the judged words of the networks in a file (or `networks` read from it), the networks,
    and the references: of the file `ref`, else their own, unless `refs` are given.
    """
    held = list(network_files.read(path) if networks is None else networks)
    if refs is None:
        refs = refs_of(held, read_texts(ref) if ref else None, ref or path)
    try:
        return judge_words(held, refs), held, refs
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def describe_confidences(name: str, judged: JudgedWords) -> str:
    """Describe confidences in a line; undefined figures are dashes."""
    nce, area = (
        NONE if math.isnan(value) else f"{value:.3f}"
        for value in (judged.cross_entropy, judged.area)
    )
    return (
        f"{name}: {len(judged.correct)} words, {100 * judged.correct.mean():.1f}% right; NCE {nce},"
        f" ECE {100 * judged.calibration_error:.2f}%, ROC area {area}"
    )


def describe_new(nbests, lists, out):
    """Yield how many hypotheses are new, and what the lists could reach with them."""
    pairs = zip(nbests, lists, strict=True)
    new = [len(longer.hyps) - len(nbest.hyps) for nbest, longer in pairs]
    yield f"{out}: {sum(new)} new hypotheses in {sum(map(bool, new))} of {len(new)} lists"
    if all(nbest.ref is not None for nbest in nbests):
        before, after = (oracle(some)[-1] for some in (nbests, lists))
        yield f"oracle WER {before:.2f} -> {after:.2f}"
