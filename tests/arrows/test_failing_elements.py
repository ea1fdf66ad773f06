"""The ops that count elements that fail are listed where people read of them as in the test that tries it.

tests/ops/failing_elements_test.cc holds its list to what the ops do.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]

# Where they are listed, and the sentence that lists them.
LISTS = {
    "proto/penstock/v1/ops.proto": r"((?:`\w+`(?:, | and )?)+) count all elements, also those that fail",
    "docs/tf_data_table.md": r"`take` and `skip` count what does not fail, ((?:`\w+`(?:, | and )?)+) all elements",
}


# Of it a sentence of its own tells.
TOLD_APART = {"zip"}


def tried():
    """The names of the ops of which the test says so."""
    text = (ROOT / "tests/ops/failing_elements_test.cc").read_text()
    # A case: its op, its pipeline of one text or several, and the word.
    return set(re.findall(r'\{"(\w+)",\s*(?:"(?:[^"\\]|\\.)*"\s*)+,\s*kCounts\}', text))


def test_the_lists_are_those_that_are_tried():
    expected = tried() - TOLD_APART
    assert {"shard", "shuffle", "enumerate"} <= expected
    for name, sentence in LISTS.items():
        # Lines of comments are one text.
        text = re.sub(r"\s*\n\s*//\s*", " ", (ROOT / name).read_text())
        found = re.findall(sentence, text)
        assert len(found) == 1, f"{name}: no sentence, or several, of this form: {sentence}"
        assert set(re.findall(r"`(\w+)`", found[0])) == expected, f"{name} lists others than tests/ops/failing_elements_test.cc"
