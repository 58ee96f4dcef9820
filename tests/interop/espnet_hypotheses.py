"""Run by ESPnet's Python: what its beam search finds with a language model of ours, as one JSON
line a hypothesis.

Arguments: the ASR model directory, wav.scp, number of utterances, exported LM directories.
"""

import json
import sys

import soundfile
from espnet2.bin.asr_inference import Speech2Text

from lmtools.bridges.espnet.plugin import register_class

asr, scp, count, *models = sys.argv[1:]
register_class()
recogniser = {
    "asr_train_config": f"{asr}/config.yaml",
    "asr_model_file": f"{asr}/valid.loss.best.pth",
}
with open(scp) as stream:
    utterances = [line.split() for line in stream][: int(count)]
for model in models:
    recognise = Speech2Text(
        **recogniser,
        lm_train_config=f"{model}/config.yaml",
        lm_file=f"{model}/lm.pth",
        lm_weight=0.5,
        nbest=20,
    )
    for utt, wav in utterances:
        for text, tokens, _, hyp in recognise(soundfile.read(wav, dtype="float32")[0]):
            found = {
                "text": text,
                "tokens": tokens,
                "total": float(hyp.score),
                "lm": float(hyp.scores["lm"]),
            }
            print(json.dumps({"model": model, "utt": utt, **found}))
