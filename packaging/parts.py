"""Names in a wheel what auditwheel has put in, with the terms under which each part is passed on.

    python parts.py WHEEL OUT LIBCURL

WHEEL is what `auditwheel repair` made, LIBCURL the folder that `libcurl.sh` filled. The wheel of the same name in the folder OUT has
libcurl in its parts list and all packages that auditwheel missed, and the file `licenses/LIBRARIES`: Debian's copyright file of each package
that a library came from. Fails where a library comes from no package, or a package has no terms. Needs dpkg-query, which knows the packages of
the machine that the wheel's name says.
"""

import base64
import csv
import hashlib
import io
import json
import pathlib
import re
import subprocess
import sys
import urllib.parse
import zipfile

_DOCUMENTATION = pathlib.Path("/usr/share/doc")
_LIST = "/sboms/auditwheel.cdx.json"
_LIBCURL = "curl"
_OF_LIBCURL = "libcurl.so.4"


def original(name):
    """"libbz2.so.1.0.4" of "penstock.libs/libbz2-a273e504.so.1.0.4": auditwheel puts a hash in front of the first dot."""
    return re.sub(r"-[0-9a-f]{8}\.", ".", name.rsplit("/", 1)[-1], count=1)


def folder_of(wheel):
    """Where Debian keeps the libraries of a wheel's machine, below /lib or /usr/lib: "aarch64-linux-gnu" of "…-manylinux_2_35_aarch64.whl"."""
    found = re.search(r"(?:linux|_\d+)_(x86_64|aarch64)\.whl$", wheel)
    if not found:
        raise ValueError(f"{wheel}: the name says no machine that Debian's folders are known of")
    return f"{found[1]}-linux-gnu"


def packages_of(libraries, folder):
    """{library: package} by dpkg, of file names in Debian's `folder` of libraries; a library that no package has is left out."""
    done = subprocess.run(["dpkg-query", "--search", *(f"*lib/{folder}/{library}" for library in libraries)], capture_output=True, text=True)
    lines = (line.rsplit(": ", 1) for line in done.stdout.splitlines())
    return {path.rsplit("/", 1)[-1]: package.split(":")[0] for package, path in lines}


def add(parts, name, version, **more):
    """Adds a package to a parts list, as a part that the wheel itself (its first component) depends on."""
    # As auditwheel writes a plus sign of a version.
    reference = f"pkg:deb/debian/{name}@{urllib.parse.quote(version)}"
    parts["components"].append({"type": "library", "bom-ref": reference, "name": name, "version": version, "purl": reference, **more})
    parts["dependencies"][0]["dependsOn"].append(reference)
    parts["dependencies"].append({"ref": reference})


def name_all(libraries, parts, folder):
    """Adds the packages of libraries that auditwheel did not find: it asks for /usr/lib, and some packages say /lib. Errors: ValueError."""
    packages = packages_of(libraries, folder)
    named = {component["name"] for component in parts["components"]}
    for library in libraries:
        if library not in packages:
            raise ValueError(f"{library} is in the wheel, and no package has it")
        if packages[library] not in named:
            version = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", packages[library]], check=True, capture_output=True, text=True)
            add(parts, packages[library], version.stdout)
            named.add(packages[library])


def terms(parts, own):
    """The text of licenses/LIBRARIES. `own`: {name: copyright file} of parts that are no package on this machine."""
    packages = {}  # text: the packages that it is the copyright file of
    for component in parts["components"][1:]:
        name = component["name"]
        path = own.get(name, _DOCUMENTATION / name / "copyright")
        if not path.is_file():
            raise ValueError(f"{path}: {name} is in the wheel, and there are no terms for it")
        packages.setdefault(path.read_text(), set()).add(f"{name} {component['version']}")
    texts = ["The libraries in this wheel come from Debian. These are the copyright files of its packages.\n"]
    for text, names in sorted(packages.items(), key=lambda item: sorted(item[1])):
        texts.append(f"{'=' * 100}\n{', '.join(sorted(names))}\n{'=' * 100}\n\n{text}")
    return "\n".join(texts)


def write(path, files):
    """Writes a wheel of `files`: [(ZipInfo, bytes)]; RECORD is made anew."""
    (record,) = [info for info, _ in files if info.filename.endswith(".dist-info/RECORD")]
    lines = io.StringIO()
    rows = csv.writer(lines, lineterminator="\n")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for info, data in files:
            if info is record or info.is_dir():
                continue
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.writerow((info.filename, f"sha256={digest}", len(data)))
            archive.writestr(info, data, zipfile.ZIP_DEFLATED, 9)
        rows.writerow((record.filename, "", ""))
        archive.writestr(record, lines.getvalue(), zipfile.ZIP_DEFLATED, 9)


def main(wheel, out, libcurl):
    wheel, out, libcurl = pathlib.Path(wheel), pathlib.Path(out), pathlib.Path(libcurl)
    with zipfile.ZipFile(wheel) as archive:
        files = [(info, archive.read(info)) for info in archive.infolist()]
    at = [info.filename.endswith(_LIST) for info, _ in files].index(True)
    info, text = files[at]
    parts = json.loads(text)
    libraries = sorted(original(name) for name in (info.filename for info, _ in files) if ".libs/" in name and not name.endswith("/"))
    if _OF_LIBCURL not in libraries:
        raise ValueError(f"{wheel}: its libcurl is not that of libcurl.sh")
    libraries.remove(_OF_LIBCURL)
    name_all(libraries, parts, folder_of(wheel.name))
    add(parts, _LIBCURL, (libcurl / "version").read_text().strip(),
        description="made of this package's source by packaging/libcurl.sh: HTTP and HTTPS alone")
    files[at] = (info, json.dumps(parts).encode())
    added = zipfile.ZipInfo(info.filename[:-len(_LIST)] + "/licenses/LIBRARIES", info.date_time)
    added.external_attr = info.external_attr
    files.insert(at, (added, terms(parts, {_LIBCURL: libcurl / "copyright"}).encode()))
    out.mkdir(parents=True, exist_ok=True)
    write(out / wheel.name, files)


if __name__ == "__main__":
    main(*sys.argv[1:])
