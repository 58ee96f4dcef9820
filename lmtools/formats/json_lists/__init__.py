"""N-best lists in JSON: where the lists, texts and scores of each format stand."""

from lmtools.formats.json_lists import hyporadise, json_io, recognisers, whisper
from lmtools.formats.json_lists.json_io import drop_partial, json_format

JSON_FORMATS = {
    # [{"id": "a1", "input": [hypotheses], "output": reference, "am_score": [one for each]}, ..]; in
    # the published sets am_score is a logarithm, averaged over tokens
    "hyporadise": json_format(
        "HyPoradise json: input, output, am_score or score",
        json_io.recognise("[", r'"input"\s*:\s*\['),
        hyporadise.read_numbered,
        hyporadise.parse_hyporadise,
        writes=("list", hyporadise.spell_hyporadise),
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
            rf'"alternatives"|{recognisers.ALONE}', r'\A(?s:(?!.*"(transcript|content)"))'
        ),
        json_io.read_results,
        recognisers.parse_vosk,
    ),
    # Google  {"results": [{"alternatives": [{"transcript": "blue", "confidence": 0.9}, ..]}, ..]}
    # AWS     {"results": {"segments": [{"alternatives": [{"transcript": .., "items": [..]}, ..]}]}}
    # Deepgram {"results": {"channels": [{"alternatives": [{"transcript": .., ..}]}]}}
    # Azure   {"NBest": [{"Confidence": 0.9, "Lexical": "blue", "Display": "Blue."}, ..]}, or, of
    #         batches, {"recognizedPhrases": [{"nBest": [{"confidence": 0.9, ..}, ..]}, ..]}
    # `am` is the logarithm of the confidence (of AWS the sum over the words) where all hypotheses
    # of the file have one above 0: Google gives it to the first one alone
    "cloud": json_format(
        "results of the recognisers of Google, Amazon, Azure, Watson, Deepgram, AssemblyAI,"
        " Rev, Speechmatics: lines with utt, or UTT.json each",
        json_io.recognise_results(
            r'"(results|NBest|recognizedPhrases|RecognitionStatus|monologues'
            r'|audio_url|acoustic_model|speech_model)"\s*:',
            r'"(transcripts?|[Ll]exical|RecognitionStatus|content|elements|words)"\s*:',
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
