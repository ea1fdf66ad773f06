"""The version, which stands in pyproject.toml, CMakeLists.txt and CHANGELOG.md.

    python version.py                 prints it; fails where the files do not agree
    python version.py bump 0.2.0      writes it into all three: what the changelog lists as unreleased becomes the section of this release
"""

import datetime
import pathlib
import re
import sys

_TREE = pathlib.Path(__file__).parents[1]
_PLACES = {
    "pyproject.toml": re.compile(r'^version = "([^"]*)"$', re.MULTILINE),
    "CMakeLists.txt": re.compile(r"^project\(penstock VERSION (\S+)", re.MULTILINE),
}
_CHANGELOG = "CHANGELOG.md"
_UNRELEASED = "## Unreleased\n"
_SECTION = re.compile(r"^## (\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)$", re.MULTILINE)


def number(text):
    """(1, 2, 3) of "1.2.3". Errors: ValueError."""
    if not re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", text):
        raise ValueError(f"a version has three numbers, such as 0.2.0: {text!r}")
    return tuple(map(int, text.split(".")))


def read(tree=_TREE):
    """The version. Errors: ValueError where two files do not agree, or where the changelog's newest release is another one.

    A changelog without a release is in front of the first one.
    """
    found = {}
    for name, pattern in _PLACES.items():
        matches = pattern.findall((tree / name).read_text())
        if len(matches) != 1:
            raise ValueError(f"{name}: one version is expected, and {len(matches)} were found")
        found[name] = matches[0]
    changelog = (tree / _CHANGELOG).read_text()
    if _UNRELEASED not in changelog:
        raise ValueError(f"{_CHANGELOG}: there is no line {_UNRELEASED.strip()!r}")
    releases = _SECTION.findall(changelog)
    if releases:
        found[_CHANGELOG] = releases[0]
    if len(set(found.values())) != 1:
        raise ValueError("the versions differ: " + ", ".join(f"{name} has {version}" for name, version in found.items()))
    return next(iter(found.values()))


def bump(version, day, tree=_TREE):
    """Writes `version` into all files; `day` is that of the release, such as 2026-11-28.

    The first release may keep the number that is there. Errors: ValueError, before anything is written, unless the number grows, or where no
    change is listed.
    """
    last = read(tree)
    changelog = (tree / _CHANGELOG).read_text()
    released = _SECTION.search(changelog)
    if number(version) < number(last) or (released and version == last):
        raise ValueError(f"a version grows: {version} does not come after {last}")
    before, _, after = changelog.partition(_UNRELEASED)
    changes = after[:released.start() - len(before) - len(_UNRELEASED)] if released else after
    if not changes.strip():
        raise ValueError(f"{_CHANGELOG}: nothing is listed as unreleased")
    for name, pattern in _PLACES.items():
        path = tree / name
        path.write_text(pattern.sub(lambda found: found[0].replace(found[1], version), path.read_text()))
    (tree / _CHANGELOG).write_text(f"{before}{_UNRELEASED}\n## {version} ({day})\n{after}")


def main(words):
    try:
        if words[:1] == ["bump"] and len(words) == 2:
            bump(words[1], datetime.date.today().isoformat())
        elif words:
            sys.exit(__doc__)
        print(read())
    except ValueError as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main(sys.argv[1:])
