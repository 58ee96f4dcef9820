"""lmtools network tune: how to combine systems, found on a development set: method, alpha,
confidence of no word, what each system's vote counts
"""

from lmtools.base.log import say, say_lines
from lmtools.evaluate import evaluate
from lmtools.formats.texts import read_texts
from lmtools.rescoring.rover import combine_systems, save_vote
from lmtools.rescoring.rover_tuning import tune_vote
from lmtools.verbs.network.common import refs_of
from lmtools.verbs.network.rover import add_systems, read_systems


def arguments(parser):
    """Declare the action's options."""
    add_systems(parser)
    parser.add("--ref", help="references: Kaldi text, trn, stm or ctm (default: the lists' own)")
    parser.add("--out", metavar="F.json", help="the settings, for `lmtools network rover`")


def run(args):
    """Tune, write, and say what the settings bring on the set."""
    systems = read_systems(args)
    given = read_texts(args.ref) if args.ref else None
    refs = refs_of(systems[0].networks.values(), given, args.ref or systems[0].path)
    vote = tune_vote(systems, refs)
    save_vote(vote, args.out)
    lines = [
        (system.path, {utt: network.text for utt, network in system.networks.items()})
        for system in systems
    ]
    lines.append((args.out, {one.utt: one.text for one in combine_systems(systems, vote)}))
    say_lines(
        f"{path}: WER {evaluate(refs, texts, 'wer', path).score:.2f}" for path, texts in lines
    )
    trust = ", ".join(f"{value:g}" for value in vote.trust)
    say(f"by {vote.method}, alpha {vote.alpha:g}, null {vote.null:g}, trust {trust}")
