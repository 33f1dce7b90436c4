"""A log survives kills, names what is damaged, and takes what several processes append."""

import os
import subprocess
import sys
from pathlib import Path
from zlib import crc32

import pytest

from precedents.errors import FormatError
from precedents.runtime.log import Log

RECORDS = [{"piece": ["a", "é"], "value": 1 / 3}, {"piece": ["b"], "value": None}, {"piece": [], "value": [1]}]


@pytest.fixture
def log(tmp_path) -> Log:
    return Log(tmp_path / "records.jsonl", "Delete it.")


@pytest.fixture
def full(log) -> Log:
    for record in RECORDS:
        log.append(record)
    return log


def test_records_come_back_in_order(full) -> None:
    assert list(full.read(dict)) == RECORDS
    assert list(full.read(lambda record: record["value"], start=2)) == [None, [1]]


def test_without_a_file_there_are_no_records(log) -> None:
    log.mend()
    assert list(log.read(dict)) == []
    assert not log.path.exists()


def test_a_line_is_json_with_a_checksum_and_the_separators_of_the_log(tmp_path) -> None:
    compact = Log(tmp_path / "compact.jsonl", "", (",", ":"))
    compact.append({"a": ["é\n", 0.5]})
    text = compact.path.read_text(encoding="utf-8")
    assert text == f'{{"a":["é\\n",0.5],"checksum":"{crc32(text[: text.rindex(",")].encode()):08x}"}}\n'
    with pytest.raises(ValueError, match="JSON"):
        compact.append({"a": float("inf")})
    assert list(compact.read(dict)) == [{"a": ["é\n", 0.5]}]


def test_cut_at_any_byte_it_is_mended_and_goes_on(full) -> None:
    content = full.path.read_bytes()
    for kept in range(len(content) + 1):
        full.path.write_bytes(content[:kept])
        whole = content[:kept].count(b"\n")
        assert list(full.read(dict)) == RECORDS[:whole]
        assert full.path.stat().st_size == kept  # reading changes nothing
        full.mend()
        for record in RECORDS[whole:]:
            full.append(record)
        assert full.path.read_bytes() == content


@pytest.mark.parametrize(
    "line", ["no json", "[1]", "3", "null", "", '{"value": 1}', '{"piece": 3, "value": 1}']
)
def test_a_damaged_line_is_named_with_what_to_do(line, full) -> None:
    with full.path.open("a") as file:
        file.write(f"{line}\n")
    full.append(RECORDS[0])
    read = full.read(lambda record: (tuple(record["piece"]), record["value"]))
    assert [next(read)[1] for _ in RECORDS] == [record["value"] for record in RECORDS]
    with pytest.raises(FormatError, match=r"^Line 4 of .*records\.jsonl is damaged\. Delete it\.$"):
        next(read)


APPEND = """
import sys
from pathlib import Path
from precedents.runtime.log import Log
log = Log(Path(sys.argv[1]), "")
print("ready", flush=True)
sys.stdin.readline()
for i in range(int(sys.argv[3])):
    log.append({"who": sys.argv[2], "i": i, "text": sys.argv[2] * 5000})
    print(i, flush=True)
"""


def appending(path: Path, who: str, count: int) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", APPEND, str(path), who, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_several_processes_append_whole_lines(log) -> None:
    writers = [appending(log.path, who, 50) for who in "abc"]
    for writer in writers:
        assert writer.stdout.readline() == b"ready\n"
    for writer in writers:
        writer.stdin.write(b"\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    records = list(log.read(dict))
    for who in "abc":
        assert [record["i"] for record in records if record["who"] == who] == list(range(50))
    assert all(record["text"] == record["who"] * 5000 for record in records)


def test_what_was_appended_before_a_kill_is_there(log) -> None:
    writer = appending(log.path, "a", 100_000)
    writer.stdin.write(b"\n")
    writer.stdin.flush()
    while (last := writer.stdout.readline()) != b"20\n":
        assert last
    writer.kill()
    told = [int(line) for line in writer.communicate()[0].splitlines()]
    log.mend()
    found = [record["i"] for record in log.read(dict)]
    assert found == list(range(len(found)))
    assert max([20, *told]) in found
