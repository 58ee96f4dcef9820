"""N-best lists in JSON: where the lists, texts and scores of each format stand."""

from functools import partial

from lmtools.formats.json_lists import json_io, objects, recognisers, whisper
from lmtools.formats.json_lists.json_io import drop_partial, json_format

JSON_FORMATS = {
    # {"utts": {"zed1": {"output": [{"rec_text": "▁blue▁finch<eos>", "score": -7.4, ..}, ..]}}}
    "espnet1": json_format(
        "ESPnet1 data.json with the hypotheses under output",
        json_io.recognise("{", '"utts"', '"rec_text"'),
        partial(json_io.read_mapping, key="utts"),
        objects.parse_espnet1,
    ),
    # {"zed1": {"hyp_1": {"score": -7.4, "text": "blue finch"}, .., "ref": ..}, ..}; am.json has
    # first-pass scores, natural logs, and references, lm.json those of the LM
    "mlm": json_format(
        "mlm-scoring: am.json or lm.json",
        json_io.recognise("{", r'"hyp_[0-9]+"\s*:\s*\{'),
        json_io.read_mapping,
        objects.parse_mlm,
        writes=("object", objects.spell_mlm),
        options={"name": "the component that `score` is (am; give lm for an lm.json)"},
    ),
    # {"sentence_id": 1, "translation": "a", "score": 0.3, "translations": ["a", "b"],
    # "scores": [0.3, 0.5]} a line; normalised by length and, by version, costs
    "sockeye": json_format(
        "Sockeye's JSON lines: sentence_id, translations, scores",
        json_io.recognise("{", r'"sentence_id"\s*:', r'"translations?"\s*:'),
        objects.read_sentences,
        objects.parse_sockeye,
        finish=objects.orient_scores,
        options={"bpe": "subword marks to join, as of moses (default: none)"},
    ),
    # [{"id": "a1", "input": [hypotheses], "output": reference, "am_score": [one for each]}, ..]; in
    # the published sets am_score is a logarithm, averaged over tokens
    "hyporadise": json_format(
        "HyPoradise json: input, output, am_score or score",
        json_io.recognise("[", r'"input"\s*:\s*\['),
        objects.read_numbered,
        objects.parse_hyporadise,
        writes=("list", objects.spell_hyporadise),
        options={
            "score": "the list of first-pass scores (am_score, else score); -NAME if they are"
            " costs, none to ignore them"
        },
    ),
    "whisper": json_format(
        "a small JSON for Whisper, CTranslate2 and Hugging Face generate, see"
        " lmtools/formats/json_lists/whisper.py",
        whisper.recognises,
        whisper.read_entries,
        whisper.parse_list,
        finish=whisper.name_scores,
    ),
    # {"utt": "a1", "ref": "blue finch", "alternatives": [{"confidence": 214.5, "text": "blue fins",
    # "result": [{"word": "blue", "start": 0.1, ..}, ..]}, ..]}: `confidence`, the acoustic model's
    # and the graph's score in one (natural logarithms), is `am`
    "vosk": json_format(
        "results of Vosk's KaldiRecognizer: lines with utt, or UTT.json each; am is the confidence",
        # clouds' results have alternatives, too, with a transcript each
        json_io.recognise_results(
            rf'"alternatives"|{recognisers.ALONE}', r'\A(?s:(?!.*"transcript"))'
        ),
        json_io.read_results,
        recognisers.parse_vosk,
    ),
    # {"utt": "a1", "ref": .., "beams": [BEAM, ..]}; of pyctcdecode `am` is the logit score, `lm`
    # the rest of the total: weighted LM, hot words and word bonus
    "beams": json_format(
        "beams of pyctcdecode, torchaudio, brain-to-text as JSON lines: utt, beams",
        json_io.recognise_results(r'"(beams|logit_score)"\s*:'),
        json_io.read_results,
        recognisers.parse_beams,
    ),
    # Google  {"results": [{"alternatives": [{"transcript": "blue", "confidence": 0.9}, ..]}, ..]}
    # AWS     {"results": {"segments": [{"alternatives": [{"transcript": .., "items": [..]}, ..]}]}}
    # Deepgram {"results": {"channels": [{"alternatives": [{"transcript": .., ..}]}]}}
    # Azure   {"NBest": [{"Confidence": 0.9, "Lexical": "blue", "Display": "Blue."}, ..]}, or, of
    #         batches, {"recognizedPhrases": [{"nBest": [{"confidence": 0.9, ..}, ..]}, ..]}
    # `am` is the logarithm of the confidence (of AWS the sum over the words) where all hypotheses
    # of the file have one above 0: Google gives it to the first one alone
    "cloud": json_format(
        "results of the recognisers of Google, Amazon, Azure, Watson, Deepgram: lines with utt, or"
        " UTT.json each",
        json_io.recognise_results(
            r'"(results|NBest|recognizedPhrases|RecognitionStatus)"\s*:',
            r'"(transcripts?|[Ll]exical|RecognitionStatus)"\s*:',
        ),
        recognisers.read_segments,
        recognisers.parse_segment,
        finish=recognisers.finish_clouds,
        options={
            "text": "of Azure: lexical (the default, the spoken form) or display (the written one)"
        },
    ),
    # d/a1.wav
    # {"text": "blue finch", "tokens": [" blue", " finch"], "ys_log_probs": [-0.1, -0.4], ..}
    # CTC models give no ys_log_probs
    "sherpa-onnx": json_format(
        "sherpa-onnx's results: file names, each with a line of JSON; 1-best",
        json_io.recognise("{", r'"text"\s*:', r'"tokens"\s*:', r'"timestamps"\s*:'),
        recognisers.read_named_lines,
        recognisers.parse_sherpa,
        finish=drop_partial,
    ),
}
