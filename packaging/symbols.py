"""Which versioned symbols the files of a wheel need, and the lowest platform tag that is honest.

    python symbols.py WHEEL            prints, for each versioned name, the highest version and the files that need it; and the tag
    python symbols.py --check WHEEL    the same; fails unless the wheel's file name has this tag

All ELF files count: programs, bindings and every library that was put in. A wheel does not hold libc, libm, libz, libstdc++ and libgcc. Those of the
machine serve, so the tag has to be of a glibc whose distributions have a new enough libstdc++, too. Needs `objdump`.
"""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

# For each glibc, what libstdc++ and libgcc its oldest mainstream distribution has: GLIBCXX, CXXABI, GCC. From the symbols of the packages.
_DISTRIBUTIONS = {
    (2, 28): ("RHEL 8", {"GLIBCXX": (3, 4, 25), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}),
    (2, 31): ("Debian 11, Ubuntu 20.04", {"GLIBCXX": (3, 4, 28), "CXXABI": (1, 3, 12), "GCC": (7, 0, 0)}),
    (2, 34): ("RHEL 9, Amazon Linux 2023", {"GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (7, 0, 0)}),
    (2, 35): ("Ubuntu 22.04", {"GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}),
    (2, 36): ("Debian 12", {"GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}),
    (2, 39): ("Ubuntu 24.04", {"GLIBCXX": (3, 4, 33), "CXXABI": (1, 3, 15), "GCC": (14, 0, 0)}),
}
# The libraries of the machine that a wheel may need. Whatever else it needs has to be inside.
_OF_THE_MACHINE = re.compile(r"(libc|libm|libdl|libpthread|librt|libresolv|libz|ld-linux-x86-64|ld-linux-aarch64|libstdc\+\+|libgcc_s)\.so\.\d+")


def needs(text):
    """Of `objdump -p`: the names of the libraries that a file needs, and a set of (name, version) for its versioned symbols."""
    libraries = set(re.findall(r"^  NEEDED +(\S+)$", text, re.MULTILINE))
    _, _, references = text.partition("Version References:")
    versions = set()
    for name, numbers in re.findall(r"^ +0x[0-9a-f]+ 0x[0-9a-f]+ \d+ ([A-Z]+)_(\d[\d.]*)$", references, re.MULTILINE):
        versions.add((name, tuple(map(int, numbers.split(".")))))
    return libraries, versions


def lowest_glibc(versions):
    """The lowest glibc, as (2, minor), whose distributions have all of `versions`: {name: the highest version needed}.

    Errors: LookupError where no distribution of the table has them.
    """
    glibc = versions.get("GLIBC", (2, 0))
    for offered, (_, libraries) in sorted(_DISTRIBUTIONS.items()):
        if offered >= glibc[:2] and all(versions.get(name, ()) <= has for name, has in libraries.items()):
            return offered
    raise LookupError(f"no distribution known here has what is needed: {versions}")


def of_wheel(wheel):
    """{name: (highest version, sorted files that need it)}, and the names of libraries that are neither inside nor of the machine."""
    highest, files = {}, collections.defaultdict(set)
    wanted, inside = set(), set()
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if not path.is_file() or path.open("rb").read(4) != b"\x7fELF":
                continue
            inside.add(path.name)
            text = subprocess.run(["objdump", "-p", str(path)], check=True, capture_output=True, text=True).stdout
            libraries, versions = needs(text)
            wanted |= libraries
            for name, version in versions:
                if version > highest.get(name, ()):
                    highest[name] = version
                    files[name] = set()
                if version == highest[name]:
                    files[name].add(str(path.relative_to(folder)))
    missing = {name for name in wanted - inside if not _OF_THE_MACHINE.fullmatch(name)}
    return {name: (highest[name], sorted(files[name])) for name in sorted(highest)}, missing


def main(words):
    check = words[:1] == ["--check"]
    (wheel,) = words[1:] if check else words
    found, missing = of_wheel(wheel)
    for name in ("GLIBC", "GLIBCXX", "CXXABI", "GCC"):
        if name in found:
            version, files = found[name]
            print(f"{name}_{'.'.join(map(str, version))}: {len(files)} files, such as {files[0]}")
    if missing:
        sys.exit(f"{wheel}: needs libraries that it does not hold: {', '.join(sorted(missing))}")
    glibc = lowest_glibc({name: version for name, (version, _) in found.items()})
    tag = "manylinux_{}_{}".format(*glibc)
    print(f"the lowest honest tag: {tag} ({_DISTRIBUTIONS[glibc][0]})")
    if check and f"-{tag}_" not in pathlib.Path(wheel).name:
        sys.exit(f"{wheel}: the name does not have the tag {tag}")


if __name__ == "__main__":
    main(sys.argv[1:])
