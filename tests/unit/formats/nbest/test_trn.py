from lmtools.formats.nbest import trn


def test_reads_words_before_the_id(tmp_path):
    path = tmp_path / "h.trn"
    path.write_text(";; a comment\nblue finch  sings (spk1_zed1)\n(spk1_zed2)\n\noh (spk1-zed3) \n")
    assert trn.read(path) == {"spk1_zed1": "blue finch sings", "spk1_zed2": "", "spk1-zed3": "oh"}


def test_writes_what_it_reads(tmp_path):
    texts = {"s_1": "blue (finch a/b it's -ab", "s_2": "", "s_3": "é ü"}
    trn.write(texts, tmp_path / "h.trn")
    assert (tmp_path / "h.trn").read_text() == "blue (finch a/b it's -ab (s_1)\n(s_2)\né ü (s_3)\n"
    assert trn.read(tmp_path / "h.trn") == texts
