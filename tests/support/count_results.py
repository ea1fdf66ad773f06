"""Prints how many tests of a JUnit file passed and how many failed; skipped ones are neither."""

import sys
import xml.etree.ElementTree


def count(path):
    passed = failed = 0
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        children = {child.tag for child in case}
        # ctest says it by an attribute, pytest by a child element.
        if children & {"failure", "error"} or case.get("status") in ("fail", "notrun"):
            failed += 1
        elif "skipped" not in children and case.get("status") != "disabled":
            passed += 1
    return passed, failed


if __name__ == "__main__":
    print(*count(sys.argv[1]))
