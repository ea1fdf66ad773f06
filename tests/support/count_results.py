"""Counts the tests of a JUnit file, and tells which ones failed and why.

count_results.py count FIRST [AGAIN]    prints three numbers: tests that passed, that failed, and that are unsteady: they failed in FIRST and
                                        passed in AGAIN, where the failed ones were run once more. Skipped tests count nowhere.
count_results.py failed FILE            prints the failed tests, a line each: a node's id of pytest, or a test's name of ctest.
count_results.py tell FIRST [AGAIN]     prints the failed and unsteady tests, each with the last lines of its first failure.
"""

import re
import sys
import xml.etree.ElementTree

LINES_OF_A_FAILURE = 12


class Case:
    def __init__(self, element):
        children = {child.tag: child for child in element}
        self.failure = next((children[tag] for tag in ("failure", "error") if tag in children), None)
        # ctest says it by an attribute, pytest by a child element.
        self.failed = self.failure is not None or element.get("status") in ("fail", "notrun")
        self.skipped = not self.failed and ("skipped" in children or element.get("status") == "disabled")
        self.name = node_id(element) if element.get("file") else element.get("name")
        output = children.get("system-out")
        self.told = (self.failure is not None and self.failure.text) or (output is not None and output.text) or ""


def node_id(element):
    """The id of a test of pytest, from a file of the family xunit1."""
    module = re.sub(r"\.py$", "", element.get("file")).replace("/", ".")
    classes = element.get("classname", "").removeprefix(module).strip(".")
    return "::".join([element.get("file"), *(classes.split(".") if classes else []), element.get("name")])


def cases(path):
    return [Case(element) for element in xml.etree.ElementTree.parse(path).iter("testcase")]


def sorted_out(first, again=None):
    """Lists of the cases that passed, failed and are unsteady."""
    passed_again = {case.name for case in cases(again) if not case.failed and not case.skipped} if again else set()
    passed, failed, unsteady = [], [], []
    for case in cases(first):
        if case.failed:
            (unsteady if case.name in passed_again else failed).append(case)
        elif not case.skipped:
            passed.append(case)
    return passed, failed, unsteady


def tell(failed, unsteady):
    for kind, some in (("FAILED", failed), ("UNSTEADY, failed once and passed when it was run again", unsteady)):
        for case in some:
            print(f"{kind}: {case.name}")
            for line in case.told.strip().splitlines()[-LINES_OF_A_FAILURE:]:
                print(f"    {line[:300]}")


if __name__ == "__main__":
    command, *files = sys.argv[1:]
    if command == "count":
        print(*map(len, sorted_out(*files)))
    elif command == "failed":
        print("\n".join(case.name for case in cases(*files) if case.failed))
    else:
        tell(*sorted_out(*files)[1:])
