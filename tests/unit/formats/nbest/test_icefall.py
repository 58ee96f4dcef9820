from lmtools.formats.nbest import icefall
from lmtools.types import Hypothesis, NBest


def test_a_file_with_lists_time_stamps_and_bare_text(tmp_path):
    path = tmp_path / "recogs-test.txt"
    path.write_text(
        "zed1-0:\tref=['BLUE', \"FINCH'S\"]\nzed1-0:\thyp=['BLUE',"
        " 'FINS']\nzed1-0:\ttimestamp_ref=[[0.1,"
        " 0.2]]\nzed1-0:\ttimestamp_hyp=[0.1]\nzed1-0:\tref=['BLUE',"
        ' "FINCH\'S"]\nzed1-0:\thyp=[]\n\na:b-1:\tref=\na:b-1:\thyp=blue  finch\n'
    )
    lists = list(icefall.read(path))
    hyps = (Hypothesis("BLUE FINS", {}, {"timestamp_hyp": "[0.1]"}), Hypothesis(""))
    first = NBest("zed1-0", hyps, "BLUE FINCH'S", {"timestamp_ref": "[[0.1, 0.2]]"})
    assert lists == [first, NBest("a:b-1", (Hypothesis("blue finch"),), "")]
    assert icefall.recognises(path, "zed1-0:\tref=['BLUE']") and not icefall.recognises(
        path, "zed1 ref=['BLUE']"
    )
