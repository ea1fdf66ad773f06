"""packaging/bindings.py and packaging/checksums.py: tags, parts lists, sums."""

import json
import pathlib
import runpy
import subprocess
import zipfile

import pytest

_PACKAGING = pathlib.Path(__file__).parents[2] / "packaging"
bindings = runpy.run_path(str(_PACKAGING / "bindings.py"))
checksums = runpy.run_path(str(_PACKAGING / "checksums.py"))


def test_tags_are_of_the_versions_that_are_there_and_in_their_order():
    names = [f"_core.cpython-{minor}-x86_64-linux-gnu.so" for minor in ("313", "39", "310")]
    assert bindings["python_tags"](names) == "cp39.cp310.cp313"


@pytest.mark.parametrize("name", ["_core.abi3.so", "_core.so", "other.cpython-311-x86_64-linux-gnu.so", "_core.cpython-313t-x86_64-linux-gnu.so"])
def test_what_is_no_binding_of_one_cpython(name):
    with pytest.raises(ValueError, match="no binding"):
        bindings["python_tags"]([name])


def test_two_bindings_for_one_python():
    with pytest.raises(ValueError, match="two bindings.*cp39"):
        bindings["python_tags"](["_core.cpython-39-x86_64-linux-gnu.so", "_core.cpython-39-aarch64-linux-gnu.so"])


def write_wheel(folder, parts):
    path = folder / "penstock-0.1.0-cp311-none-manylinux_2_35_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in parts.items():
            archive.writestr(f"penstock-0.1.0.dist-info/sboms/{name}", text)
    return path


def test_sums_are_those_of_sha256sum(tmp_path):
    write_wheel(tmp_path, {"auditwheel.cdx.json": json.dumps({"components": [{"name": "zlib"}]})})
    (tmp_path / "penstock_0.1.0_amd64.deb").write_bytes(b"\0\1")
    checksums["main"](tmp_path)
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path, check=True, capture_output=True)
    assert len((tmp_path / "SHA256SUMS").read_text().splitlines()) == 3
    assert json.loads((tmp_path / "penstock-0.1.0-cp311-none-manylinux_2_35_x86_64.cdx.json").read_text())["components"]


@pytest.mark.parametrize("parts, reason", [
    ({}, "there are 0"), ({"a.cdx.json": "{}", "b.cdx.json": "{}"}, "there are 2"), ({"a.cdx.json": '{"components": []}'}, "names no part")])
def test_a_wheel_without_parts_list(tmp_path, parts, reason):
    with pytest.raises(ValueError, match=reason):
        checksums["write_parts"](write_wheel(tmp_path, parts))
