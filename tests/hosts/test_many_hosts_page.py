"""The Python of docs/howto/many-hosts.md, as two hosts run it."""

import json
import os
import pathlib
import re
import subprocess
import sys

import penstock

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/howto/many-hosts.md"
RECORDS, EPOCHS, ROWS = 2500, 2, 1024

# What the page leaves to its reader.
BEFORE = f"""
import json, sys
import penstock, penstock.torch
epochs = {EPOCHS}
seen = []
decode = lambda record: {{"n": penstock.functions.string_to_number(record)}}
train = lambda batch: seen.append(batch["n"].tolist())
"""
BEHIND = "\nprint(json.dumps(seen))\n"


def test_the_example_in_python_gives_each_host_its_rows(tmp_path):
    (code,) = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)[:1]
    (tmp_path / "flowers").mkdir()
    for shard in range(2):
        with penstock.io.TFRecordWriter(str(tmp_path / f"flowers/{shard}.tfrecord")) as writer:
            for number in range(shard, RECORDS, 2):
                writer.write(b"%d" % number)

    def run(hosts, host):
        environment = dict(os.environ, PENSTOCK_HOSTS=str(hosts), PENSTOCK_HOST=str(host))
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", BEFORE + code + BEHIND], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(done.stdout)

    whole, parts = run(1, 0), [run(3, host) for host in range(3)]
    assert [len(rows) for rows in whole] == [ROWS] * (RECORDS // ROWS) * EPOCHS
    assert [sum(rows, []) for rows in zip(*parts)] == whole
    # Each epoch has an order of its own.
    assert whole[0] != whole[RECORDS // ROWS]
    assert len(set(sum(whole[: RECORDS // ROWS], []))) == RECORDS // ROWS * ROWS
