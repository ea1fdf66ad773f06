"""The ops that count elements that fail are listed where people read of them as in their registrations.

tests/ops/failing_elements_test.cc tries each of them.
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


def registered():
    """The names of the ops whose registration says so."""
    names = set()
    for path in (ROOT / "server/ops").glob("*.cc"):
        # Behind the traits stands what plans: a function, or its name.
        for name, traits in re.findall(r'OpRegistration<[\w:]+> \w+\(\s*"(\w+)",\s*\{(.*?)\},\s*(?:\[|\w+\))', path.read_text(), re.DOTALL):
            if ".counts_failures = true" in traits:
                names.add(name)
    return names


def test_the_lists_are_those_of_the_registrations():
    expected = registered() - TOLD_APART
    assert {"shard", "shuffle", "enumerate", "sample_from_datasets"} <= expected
    # None is overlooked.
    said = sum(path.read_text().count("counts_failures") for path in (ROOT / "server/ops").glob("*.cc"))
    assert said == len(registered())
    for name, sentence in LISTS.items():
        # Lines of comments are one text.
        text = re.sub(r"\s*\n\s*//\s*", " ", (ROOT / name).read_text())
        found = re.findall(sentence, text)
        assert len(found) == 1, f"{name}: no sentence, or several, of this form: {sentence}"
        assert set(re.findall(r"`(\w+)`", found[0])) == expected, f"{name} lists others than the registrations"
