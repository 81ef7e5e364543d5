"""The checks of the soak notice what they are there for."""

import base64

import pytest

from judge import check_back, check_memory, check_trend
from ledger import Grown, Ledger, Lost, Source

DATA = bytes(range(256)) * 4


def ledger():
    return Ledger("p", {"stdout": Source(DATA, 10, 500)})


def fed(*events):
    made = ledger()
    for event in events:
        made.offer(*event)
    return made


GOOD = [(1, "stdout", DATA[10:310]), (2, "stdout", DATA[310:510]), (3, "exited", 0),
        (4, "closed", None)]


def test_a_good_process():
    fed(*GOOD).check([0])
    fed(*GOOD, GOOD[0], GOOD[3]).check([0])  # told again after a resume
    fed(GOOD[1], GOOD[0], GOOD[3], GOOD[2]).check([0])


@pytest.mark.parametrize("events", [
    pytest.param(GOOD[:1] + [(2, "exited", 0), (3, "closed", None)], id="lost at the end"),
    pytest.param([(1, "stdout", DATA[11:310])] + GOOD[1:], id="lost at the beginning"),
    pytest.param([GOOD[0], (2, "stdout", DATA[309:510])] + GOOD[2:], id="a doubled byte"),
    pytest.param([GOOD[0], (2, *GOOD[0][1:])], id="a doubled chunk"),
    pytest.param([GOOD[0], (3, *GOOD[1][1:]), (4, "exited", 0), (5, "closed", None)],
                 id="a skipped number"),
    pytest.param(GOOD[:3], id="no closed"),
    pytest.param(GOOD[:2] + [(3, "closed", None)], id="no exited"),
    pytest.param(GOOD[:2] + [(3, "exited", 1), (4, "closed", None)], id="another exit code"),
    pytest.param(GOOD + [(5, "stdout", b"x")], id="bytes after closed"),
    pytest.param([(1, "stderr", b"x")], id="bytes on another stream"),
    pytest.param(GOOD + [(1, "stdout", DATA[11:311])], id="other bytes under an old number"),
    pytest.param(GOOD + [(3, "stdout", b"")], id="another event under an old number"),
])
def test_faults_of_a_process(events):
    with pytest.raises(Lost):
        fed(*events).check([0])


def read(chunks, next_seq, exited=False, closed=False):
    return {"chunks": [{"seq": s, "stream": k, "chunk": base64.b64encode(d)} for s, k, d in chunks],
            "nextSeq": next_seq, "exited": exited, "exitCode": 0 if exited else None,
            "closed": closed}


def test_a_read_after_a_resume():
    made = fed(GOOD[0])
    made.catch_up(read([GOOD[1]], 5, True, True))
    made.check([0])


def test_a_read_that_leaves_out_a_chunk():
    with pytest.raises(Lost):
        ledger().catch_up(read([GOOD[1]], 5, True, True))


def test_an_echo():
    source = Grown(b"ready")
    made = Ledger("p", {"stdout": source})
    source.add(b" and more")
    made.offer(1, "stdout", b"ready and")
    with pytest.raises(Lost):
        made.offer(2, "stdout", b" more more")


def test_memory():
    assert check_memory(10 << 20, 12 << 20)[0]
    assert not check_memory(10 << 20, (12 << 20) + 1)[0]
    assert check_memory(10 << 20, 13 << 20, 3 << 20)[0]
    steady = [(60 * i, 8_000_000 + (i % 3) * 300_000) for i in range(10)]
    assert check_trend(steady)[0]
    assert not check_trend([(x, y + 4096 * x) for x, y in steady])[0]
    assert check_trend(steady[:3]) is None


def test_counts():
    assert check_back(12, 12)[0]
    assert not check_back(12, 13)[0]
