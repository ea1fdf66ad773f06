"""packaging/parts.py: each library in a wheel is named, with its terms."""

import base64
import csv
import hashlib
import json
import pathlib
import runpy
import zipfile

import pytest

parts = runpy.run_path(str(pathlib.Path(__file__).parents[2] / "packaging" / "parts.py"))
WHEEL = "penstock-0.1.0-cp311-none-manylinux_2_35_x86_64.whl"
INFO = "penstock-0.1.0.dist-info"


def empty_list():
    return {"components": [{"name": "penstock", "version": "0.1.0", "bom-ref": "w"}], "dependencies": [{"ref": "w", "dependsOn": []}]}


def make(folder, *libraries, listed=()):
    """A wheel as auditwheel makes it, and a folder as libcurl.sh makes it."""
    text = empty_list()
    for name in listed:
        parts["add"](text, name, "1")
    with zipfile.ZipFile(folder / WHEEL, "w") as archive:
        for library in libraries:
            archive.writestr(f"penstock.libs/{library}", b"\x7fELF" + library.encode())
        archive.writestr(f"{INFO}/sboms/auditwheel.cdx.json", json.dumps(text))
        archive.writestr(f"{INFO}/RECORD", "of the wheel before\n")
    (folder / "libcurl").mkdir()
    (folder / "libcurl" / "version").write_text("7.88.1-10+deb12u15\n")
    (folder / "libcurl" / "copyright").write_text("COPYRIGHT AND PERMISSION NOTICE\n")
    return folder / WHEEL, folder / "out", folder / "libcurl"


@pytest.mark.parametrize("name, original", [
    ("penstock.libs/libbz2-a273e504.so.1.0.4", "libbz2.so.1.0.4"),
    ("penstock.libs/liblber-2-64f183c1.5.so.0.1.8", "liblber-2.5.so.0.1.8"),
    ("penstock.libs/libpcre2-8-092bc945.so.0.11.2", "libpcre2-8.so.0.11.2"),
    ("penstock.libs/libz.so.1", "libz.so.1")])
def test_the_names_that_debian_gave(name, original):
    assert parts["original"](name) == original


def test_what_auditwheel_missed_is_named_with_its_terms(tmp_path):
    # Debian 12's libc6 says /lib for the one; its zlib stands for what auditwheel found.
    wheel, out, libcurl = make(tmp_path, "libcurl-0123abcd.so.4", "libm-0123abcd.so.6", "libstdc++-0123abcd.so.6", listed=["libstdc++6"])
    parts["main"](wheel, out, libcurl)
    with zipfile.ZipFile(out / WHEEL) as archive:
        listed = json.loads(archive.read(f"{INFO}/sboms/auditwheel.cdx.json"))
        terms = archive.read(f"{INFO}/licenses/LIBRARIES").decode()
        rows = {name: (digest, size) for name, digest, size in csv.reader(archive.read(f"{INFO}/RECORD").decode().splitlines())}
        assert set(rows) == set(archive.namelist()) and rows.pop(f"{INFO}/RECORD") == ("", "")
        for name, (digest, size) in rows.items():
            data = archive.read(name)
            assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=") and int(size) == len(data)
    assert [part["name"] for part in listed["components"]] == ["penstock", "libstdc++6", "libc6", "curl"]
    assert listed["dependencies"][0]["dependsOn"] == [part["bom-ref"] for part in listed["components"][1:]]
    assert "GNU C Library" in terms and "COPYRIGHT AND PERMISSION NOTICE" in terms and "curl 7.88.1-10+deb12u15" in terms


def test_a_library_of_no_package(tmp_path):
    with pytest.raises(ValueError, match="libnobodys.so.1 is in the wheel, and no package has it"):
        parts["main"](*make(tmp_path, "libcurl-0123abcd.so.4", "libnobodys-0123abcd.so.1"))


def test_a_wheel_with_debians_libcurl(tmp_path):
    with pytest.raises(ValueError, match="libcurl"):
        parts["main"](*make(tmp_path, "libcurl-0123abcd.so.4.8.0"))


def test_a_package_without_terms(tmp_path):
    with pytest.raises(ValueError, match="there are no terms"):
        parts["main"](*make(tmp_path, "libcurl-0123abcd.so.4", listed=["no-such-package"]))


def test_a_version_in_an_address_is_quoted_as_auditwheel_does_it():
    text = empty_list()
    parts["add"](text, "libbz2-1.0", "1.0.8-5+b1")
    assert text["components"][-1]["purl"] == text["components"][-1]["bom-ref"] == "pkg:deb/debian/libbz2-1.0@1.0.8-5%2Bb1"
    assert text["components"][-1]["version"] == "1.0.8-5+b1"


@pytest.mark.parametrize("wheel, folder", [
    (WHEEL, "x86_64-linux-gnu"),
    ("penstock-0.1.0-cp311.cp313-none-manylinux_2_35_aarch64.whl", "aarch64-linux-gnu"),
    ("penstock-0.1.0-cp311-none-linux_aarch64.whl", "aarch64-linux-gnu")])
def test_the_folder_is_that_of_the_wheels_machine(wheel, folder):
    assert parts["folder_of"](wheel) == folder


def test_a_wheel_of_a_machine_that_nobody_knows():
    with pytest.raises(ValueError, match="machine"):
        parts["folder_of"]("penstock-0.1.0-cp311-none-manylinux_2_35_riscv64.whl")
