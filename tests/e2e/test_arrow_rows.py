"""Rows of Arrow files by the command: `where` says which row fills which place, and `when` finds it again."""

import pathlib
import re

FILES = pathlib.Path(__file__).parents[1] / "golden" / "arrow"
SPEC = """
name: "rows"
stage {{ arrow {{ files: "{files}/numbers.arrow" files: "{files}/numbers_stream.arrow" feature {{ name: "int64" }} }} }}
stage {{ shuffle {{ global: true seed: 3 }} }}
stage {{ batch {{ batch_size: 8 }} }}
"""


def test_a_row_is_found_by_its_number(penstock_command, tmp_path):
    spec = tmp_path / "rows.textproto"
    spec.write_text(SPEC.format(files=FILES))
    found = set()
    for place in range(20):
        words = ("--step", place // 8, "--row", place % 8)
        result = penstock_command("where", spec, *words)
        assert result.code == 0, result
        path, row, offset = re.fullmatch(r"(.*), record (\d+), offset (\d+) \(epoch 0\)\n", result.out).groups()
        assert row == offset
        found.add((pathlib.Path(path).name, int(row)))
        again = penstock_command("when", spec, "--file", path, "--offset", offset)
        assert again.out == f"epoch 0, step {place // 8}, row {place % 8}\n"
    assert found == {(name, row) for name in ("numbers.arrow", "numbers_stream.arrow") for row in range(10)}


def test_selftest_holds(penstock_command, tmp_path):
    spec = tmp_path / "rows.textproto"
    spec.write_text(SPEC.format(files=FILES))
    result = penstock_command("selftest", spec)
    assert result.code == 0, result
