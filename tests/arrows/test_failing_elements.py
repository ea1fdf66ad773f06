"""The ops that count elements that fail are those whose registration says so, wherever people read of them.

tests/ops/failing_elements_test.cc holds the registrations to what the ops do.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]

# Where they are listed, and the sentence that lists them.
LISTS = {
    "proto/penstock/v1/ops.proto": r"((?:`\w+`(?:, | and )?)+) count all elements, also those that fail",
    "docs/tf_data_table.md": r"`take` and `skip` count what does not fail, ((?:`\w+`(?:, | and )?)+) all elements",
}


def by_registration():
    """The names of the ops that say it."""
    texts = {path.stem: path.read_text() for path in (ROOT / "server/ops").glob("*.cc")}
    return {name for name, text in texts.items() if re.search(r"\.counts_failures = true", text)}


def test_the_lists_are_those_of_the_registrations():
    expected = by_registration()
    assert {"shard", "shuffle", "enumerate"} <= expected
    for name, sentence in LISTS.items():
        # Lines of comments are one text.
        text = re.sub(r"\s*\n\s*//\s*", " ", (ROOT / name).read_text())
        found = re.findall(sentence, text)
        assert len(found) == 1, f"{name}: no sentence, or several, of this form: {sentence}"
        assert set(re.findall(r"`(\w+)`", found[0])) == expected, f"{name} lists others than the ops that say .counts_failures = true"
