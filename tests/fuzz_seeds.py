"""Undamaged input of every format that its own writer would not write, for fuzz.py: content by
path, the empty path being a single file.
"""

import gzip
import math
import struct


def lines(*texts: str | bytes) -> bytes:
    return b"".join((text if isinstance(text, bytes) else text.encode()) + b"\n" for text in texts)


def single(*texts: str | bytes) -> dict[str, bytes]:
    """A file of these lines that is the whole input."""
    return {"": lines(*texts)}


def binary_lattice(word: int, compact: bool = True) -> bytes:
    """A lattice of one arc in Kaldi's binary form, compact or plain."""

    def weight(graph: float, acoustic: float, *ids: int) -> bytes:
        given = struct.pack(f"<{len(ids) + 1}i", len(ids), *ids) if compact else b""
        return struct.pack("<ff", graph, acoustic) + given

    kinds = (b"vector", b"compactlattice44" if compact else b"lattice4")
    parts = [struct.pack("<i", 2125659606), *(struct.pack("<i", len(k)) + k for k in kinds)]
    parts += [struct.pack("<iiQqqq", 2, 0, 3, 0, 2, 1), weight(math.inf, math.inf)]
    parts += [struct.pack("<qii", 1, word if compact else 7, word), weight(1.5, 2.0, 7, 8)]
    return b"".join([*parts, struct.pack("<i", 1), weight(0.25, 0.0), struct.pack("<q", 0)])


KALDI_TEXT = lines("zed1 blue finch sings", "zed2  ")
ESPNET2 = {
    "logdir/output.1/1best_recog/text": KALDI_TEXT,
    "logdir/output.1/1best_recog/score": lines(
        "zed1 tensor(-7.41)", "zed2 tensor(-8.5, device='cuda:0')"
    ),
    "logdir/output.1/1best_recog/token": lines("zed1 ▁blue ▁fin ch ▁sings", "zed2 "),
    "logdir/output.1/1best_recog/token_int": lines("zed1 4 5 6 7", "zed2 2"),
    "logdir/output.2/2best_recog/text": lines("zed3 blue"),
    "logdir/output.2/2best_recog/score": lines("zed3 -1e1"),
}
KALDI_NBEST = [
    {
        "words_text": lines("zed1-1 blue finch sings", "zed1-2 blue"),
        "lmwt.nolm": lines("zed1-1 14.2031", "zed1-2 3"),
        "lmwt.withlm": lines("zed1-1 24.5", "zed1-2 9"),
        "lmwt.lmonly": lines("zed1-1 10.3", "zed1-2 6"),
        "acwt": lines("zed1-1 -3120.55", "zed1-2 1e3"),
        "ali": lines("zed1-1 1 2 3", "zed1-2 1"),
    },
    {
        "archives.1/words_text": lines("zed1-1 blue"),
        "archives.1/acwt": b"zed1-1 \0B\x04\x00\x00\x80\x3f",
        "archives.1/lmwt.nolm": lines("zed1-1 2"),
        "archives.2/words_text": lines("zed2-1 finch"),
        "archives.2/acwt": lines("zed2-1 -1"),
        "archives.2/lmwt.nolm": lines("zed2-1 2"),
        "num_jobs": lines("2"),
    },
]
MOSES = [
    single(
        "0||| blue finch .  ||| d: 0 -7.6 lm: -41.3 -40.4 w: -3 ||| -14.6",
        "0||| blue ||| d: 0 -7 lm: -4 -4e1 w: -1 ||| -1 ||| 0-0 ||| x",
    ),
    single(
        "0 ||| blue ||| LM0= -41.3 TM0= -6.7 -1.2 X=1 ||| -14.6 ||| 0-0 1-1",
        "3 |||  ||| LM0= 0 TM0= 1 2 X=3 ||| 1",
    ),
]
FAIRSEQ = [
    single(
        "2021-01-01 | INFO | fairseq_cli.generate | x",
        *(
            "S-3\tblauer fink",
            "T-3\tblue fin@@ ch",
            "H-3\t-0.42\tblue fin@@ ch",
            "D-3\t-0.42\tblue finch",
            "P-3\t-0.31 -0.52 -0.44 -0.40",
        ),
        *(
            "H-3\t-0.5\tblue",
            "D-3\t-0.5\tblue",
            "P-3\t-0.5 -0.5",
            "Generate test with beam=5: BLEU4 = 1",
            "H-1\t-1\t",
        ),
    ),
    single("H-0\t-0.4\t▁blue ▁fin ch"),
]
SRILM = [
    single(
        "NBestList2.0",
        "(-71234) blue ( st: 0.1 et: 0.4 g: -120 a: -900 ) b[lu] ( st: 0.1 et: 0.2 g: 0 a: -5 )"
        " finch ( st: 0.5 et: 0.9 g: 1 a: 2 )",
    ),
    single("NBestList1.0", "(-71234) blue finch", "(-8)"),
    {"b.gz": gzip.compress(lines("-311.2 -14.9 2 blue finch"), mtime=0), "a": lines("-1 -2 0")},
]
WORDS = lines("<eps> 0", "blue 1", "finch 2", "a 3", "b 4", "c 5", "#0 6")
KALDI = [
    {
        "words.txt": WORDS,
        "lat.1": lines(
            "zed1 ", "0\t1\t1\t3.1,250.4,3_3_4", "1\t2\t2", "1\t2\t0\tInfinity,0,", "2\t0.5,0,", ""
        ),
        "lat.2.gz": gzip.compress(lines("zed2 ", "0\t1\t1\t1", "1", ""), mtime=0),
        "num_jobs": lines("2"),
    },
    {"words.txt": WORDS, "lat.1": lines("zed1 ", "0 1 5 1 1,2", "1 2 6 0 0.5,7", "2 0.5,0", "")},
    *(
        {"words.txt": WORDS, "lat.1": b"zed1 " + binary_lattice(2, compact)}
        for compact in (True, False)
    ),
]
SLF = [
    single(
        *(
            "VERSION=1.0",
            "base=10",
            "lmscale=9 wdpenalty=-1",
            "N=3 L=2",
            "I=0 t=0",
            "I=1 t=0.5 W=blue v=1",
            "I=2 t=1 W=!NULL",
        ),
        *("J=0 S=0 E=1 a=-3 l=-4.1", "J=1 S=1 E=2"),
    ),
    single(
        "VERSION=1.0",
        "UTTERANCE=zed1",
        "N=2 L=1",
        "I=0",
        "I=1",
        "J=0 S=0 E=1 W=blue v=0 a=-310.2 l=-4.1 p=0.5",
    ),
]
POCKETSPHINX = single(
    *(
        "# -logbase 1.0001",
        "#",
        "Frames 210",
        "#",
        "Nodes 3 (NODEID WORD STARTFRAME FIRST-ENDFRAME LAST-ENDFRAME)",
    ),
    *("0 <s> 0 3 3", "1 blue(2) 4 20 31", "2 </s> 32 209 209", "#", "Initial 0", "Final 2", "#"),
    *(
        "BestSegAscr 0 (NODEID ENDFRAME ASCORE)",
        "#",
        "Edges (FROM-NODEID TO-NODEID ASCORE)",
        "0 1 -43210",
        "1 2 -99",
        "End",
    ),
)
SEEDS: dict[str, list[dict[str, bytes]]] = {
    "jsonl": [
        single(
            '{"utt": "a", "hyps": [{"text": "x", "scores": {"am": -1}, "extra": {"t": ""}}]}\r',
            '{"utt": "d", "hyps": [{"text": "x", "written": "X.", "scores": {"am": -1}}]}',
            "",
            '{"utt":"b","hyps":[]}',
        )
    ],
    "networks": [
        single(
            '{"utt": "a", "ref": "x y", "text": "x", "slots": [{"chosen": "x", "confidence": 0.75,'
            ' "words": {"x": 0.75, "": 0.25}, "time": [0.1, 0.25]}, {"chosen": "", "confidence": 1,'
            ' "words": {"": 1}}]}',
            "",
            '{"utt": "b", "slots": []}',
        )
    ],
    "espnet2": [ESPNET2],
    "icefall": [single("zed1-0:\tref=['BLUE', 'FINCH']", "zed1-0:\thyp=['BLUE', \"FIN'S\"]")],
    "kaldi-nbest": KALDI_NBEST,
    "moses": [
        *MOSES,
        single(
            "0 ||| the |0-1| fox |2-2,wa=0-0,total=-1| ||| LM=-1 a=2 ||| -1",
            "0 ||| b ||| LM=1 ||| 2",
        ),
    ],
    "marian": [
        single(
            "0 ||| blue@@ finch ||| 0-0 ||| WordScores= -0.1 -0.2 ||| F0= -2.1 F1=-0.4 ||| -0.7",
            "2 ||| a ||| F0= -1 F1= 1 ||| 1",
        ),
        single("0 ||| ▁blue </s> ||| F0= -2.1 WordScores= -0.1 -1e-05 ||| -0.7"),
    ],
    "fairseq": FAIRSEQ,
    "srilm": SRILM,
    "systems": [
        {"a.txt": lines("blue finch", "", "x"), "b.txt": lines("zed1 blue", " y", "z z")},
        {"a": KALDI_TEXT, "b": KALDI_TEXT},
    ],
    "hyporadise": [
        single(
            '[{"input": ["blue finch", "blue fins"], "output": "blue finch", "am_score": [-1.5,'
            ' -2]}, {"input": [], "output": "x"}]'
        ),
        single('[{"input": ["blue"], "output": "blue", "score": [0.5]}]'),
    ],
    "whisper": [
        single(
            '[{"utt": "a1", "ref": "blue finch", "hypotheses": [{"text": "blue fins", "score":'
            ' -0.31, "tokens": [428, 3962, 1274]},',
            '{"text": "x", "score": -0.2, "tokens": 3, "length_penalty": 0.5}]}]',
        ),
        single(
            '[{"utt": "a", "hypotheses": [{"text": "x", "avg_logprob": -0.2, "tokens": [1]}]},'
            ' {"utt": "b", "hypotheses": []}]'
        ),
        {"a.json": b'{"text": " x", "segments": [{"id": 0}]}', "b.json": b'{"transcription": []}'},
    ],
    "vosk": [
        single(
            '{"utt": "zed1", "ref": "blue", "alternatives": [{"confidence": 21.5, "text": " blue",'
            ' "result": [{"word": "blue", "start": 0.1}]}, {"confidence": 20, "text": ""}]}',
            '{"utt": "zed2", "alternatives": []}',
        ),
        {
            "a.json": b'{"alternatives": [{"confidence": 1, "text": "blue finch"}]}',
            "b.json": b'{\n  "alternatives": [{"confidence": 2, "text": ""}]}',
        },
        single('{"utt": "zed1", "text": "blue finch"}'),
    ],
    "nemo": [single("blue finch\t-3.2", "\t-4", "x\t-1", "y\t-2")],
    "manifest": [
        single('{"audio_filepath": "/d/zed1.wav", "text": "blue", "pred_text": "blew"}'),
        single('[{"id": "zed1", "text": "blue finch"}, {"id": "zed2", "text": ""}]'),
        single("client_id\tpath\tsentence", "a\tzed1.mp3\tBlue.", "b\tzed2.mp3\tA finch"),
        single("wav_filename,wav_filesize,transcript", 'zed1.wav,12,"blue, finch"'),
    ],
    "wenet": [single("wav zed1", "candidate -3.25 blue finch", "candidate -4", "wav zed2")],
    "cloud": [
        single(
            '{"utt": "zed1", "results": [{"alternatives": [{"transcript": "blue", "confidence":'
            ' 0.5}, {"transcript": "blew", "confidence": 0.25}]}]}',
            '{"utt": "zed2", "results": {"segments": [{"alternatives": [{"transcript": "blue",'
            ' "items": [{"confidence": "0.5", "content": "blue", "type": "pronunciation"}]}]}]}}',
            '{"utt": "zed3", "recognizedPhrases": [{"nBest": [{"confidence": 0.5, "lexical": "x",'
            ' "display": "X."}]}]}',
        ),
        {"a.json": b'{"NBest": [{"Confidence": 0.5, "Lexical": "x", "Display": "X."}]}'},
    ],
    "sherpa-onnx": [
        single(
            "d/zed1.wav",
            '{"text": "blue", "tokens": ["blue"], "timestamps": [0.1], "ys_log_probs": [-0.5]}',
            "----",
            "d/zed2.wav",
            '{"text": "", "tokens": [], "timestamps": [], "ys_log_probs": []}',
        )
    ],
    "trn": [single(";; comment", "blue finch (spk1_zed1)", "(zed2)")],
    "ctm": [
        single(";; comment", "zed1 1 0.34 0.15 blue 0.98", "zed1 1 0.5 0.1 finch", "zed2 1 0 1 x")
    ],
    "stm": [
        single(
            ";; comment",
            "zed1 1 s 0.5 1.5 <o,f0,male> blue",
            "zed1 1 s 0 0.5 finch",
            "zed2 1 s 0 1",
        )
    ],
    "kaldi-text": [{"": KALDI_TEXT}],
    "kaldi": KALDI,
    "slf": SLF,
    "pocketsphinx": [POCKETSPHINX],
    "plf": [single("((('tal', -0.73, 1),('tardes', -2.55, 2),),(('ves', -2.08, 1),),)", "()")],
    "openfst": [single("0 1 blue blue 0.5", "1 2 <eps> <eps>", "2 1.5")],
    "wcn": [single("the:3:0.909 that:3:0.069 phone:4:0.976", "", "<eps>:1:1")],
    "plain": [{"": KALDI_TEXT}],
    "scores": [
        single('# lmtools-scores {"model": "x"}', "zed1#1\t-7.5\t4", "zed1#2\t-8\t5"),
        single('# lmtools-scores {"model": "x"}', "zed1#1\t-7.5\t4", f"# lists {'0a' * 16}"),
    ],
}
