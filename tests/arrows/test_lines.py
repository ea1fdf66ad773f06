"""Lines of C and C++ have at most 100 columns, but for drawings, tables and samples in comments, raw texts, and what EXCEPTIONS says."""

import re

from tree_files import ROOT, tree_files

WIDTH = 100

# Files with longer lines, and why.
EXCEPTIONS = {
    "bench/control/slow_disk.c": "calls of the C library, one a line",
    "client/c/penstock.h": "a comment behind a field",
    "client/cpp/penstock.hpp": "a message of the compiler",
    "server/codec/json_example.cc": "a descriptor as text",
    "tests/e2e/failing_calls.c": "calls of the C library, one a line",
    "tests/fuzz/json_fuzz.cc": "a spec as text",
}


def is_drawing(line):
    """A comment's line that is no prose: indented behind its //, or with characters to draw with."""
    comment = re.match(r"\s*//[/!]?(.*)", line)
    return comment is not None and (comment[1].startswith("   ") or re.search(r"[\u2190-\u21ff\u2500-\u25ff]", comment[1]) is not None)


def long_lines(text):
    # A raw text stands as it is.
    return [line for line in text.split("\n") if len(line) > WIDTH and not is_drawing(line) and 'R"' not in line]


def test_it_finds_long_lines():
    prose = "// " + "word " * 25
    assert long_lines(prose) == [prose]
    assert long_lines("//   " + "─" * 120) == [] and long_lines("//     term   " + "word " * 25) == []
    assert len(long_lines("int " + "x" * 97 + ";\n" + "y" * 100)) == 1


def test_lines_end_at_column_100():
    sources = list(tree_files(".h", ".hpp", ".cc", ".c", ".cu"))
    found = {name: lines for name in sources if (lines := long_lines((ROOT / name).read_text(encoding="utf-8")))}
    assert len(sources) > 1000
    complaints = [f"{name}: {line}" for name, lines in found.items() if name not in EXCEPTIONS for line in lines]
    assert complaints == [], "a file that needs long lines gets a reason in EXCEPTIONS"
    assert set(EXCEPTIONS) <= set(found), "an exception that no file needs any more"
