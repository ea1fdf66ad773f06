"""The last two files of a release: its parts lists and its checksums.

    python checksums.py FOLDER

A parts list (CycloneDX JSON) is taken out of each wheel, in which auditwheel wrote the Debian packages of the libraries that it put in. The
sdist and the .deb hold no library of others; the .deb names its in its field Depends. SHA256SUMS has a line for each file of the folder, in the
form of `sha256sum`.
"""

import hashlib
import json
import pathlib
import sys
import zipfile

_SUMS = "SHA256SUMS"


def write_parts(wheel):
    """Writes the parts list of a wheel beside it. Errors: ValueError for a wheel without one, and one that names no part."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".cdx.json")]
        if len(names) != 1:
            raise ValueError(f"{wheel}: one parts list is expected, and there are {len(names)}")
        text = archive.read(names[0])
    if not json.loads(text).get("components"):
        raise ValueError(f"{wheel}: the parts list names no part")
    wheel.with_suffix(".cdx.json").write_bytes(text)


def write_sums(folder):
    """Writes SHA256SUMS; its lines are sorted by name."""
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(folder.iterdir()) if path.name != _SUMS]
    (folder / _SUMS).write_text("".join(lines))


def main(folder):
    for wheel in sorted(folder.glob("*.whl")):
        write_parts(wheel)
    write_sums(folder)
    print((folder / _SUMS).read_text(), end="")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
