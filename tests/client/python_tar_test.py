"""penstock.TarDataset, over tar files that Python's tarfile writes. Samples beyond that, and damage: tests/io/record/tar_format_test.cc."""

import gzip
import io
import tarfile

import pytest

import penstock

pytestmark = pytest.mark.filterwarnings("ignore:this trainer holds")


def write_tar(path, members, format=tarfile.PAX_FORMAT):
    with tarfile.open(path, "w", format=format) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return str(path)


def members(first, last):
    for i in range(first, last):
        # Some are long, and are read where they are.
        yield f"folder/{i:04}.jpg", bytes([i % 256]) * (20_000 if i % 10 == 3 else i)
        yield f"folder/{i:04}.CLS", str(i).encode()


@pytest.fixture
def tars(tmp_path):
    write_tar(tmp_path / "a.tar", members(0, 60))
    write_tar(tmp_path / "b.tar", members(60, 100), tarfile.GNU_FORMAT)
    return str(tmp_path / "*.tar")


def labels(dataset):
    return [int(bytes(sample["cls"])) for sample in dataset]


def test_samples_come_with_the_features_that_are_asked_for(tars):
    dataset = penstock.TarDataset(tars, ["jpg", "cls"])
    found = [(bytes(sample["jpg"]), int(bytes(sample["cls"]))) for sample in dataset]
    assert found == [(bytes([i % 256]) * (20_000 if i % 10 == 3 else i), i) for i in range(100)]
    named = next(iter(penstock.TarDataset(tars, {"key": "__key__", "file": "__url__", "picture": "png;jpg"}).skip(61)))
    assert bytes(named["key"]) == b"folder/0061" and bytes(named["file"]).endswith(b"/b.tar") and bytes(named["picture"]) == b"=" * 61


def test_all_samples_in_a_random_order(tars):
    dataset = penstock.TarDataset(tars, ["cls", "__url__", "__key__"]).global_shuffle(seed=3)
    found = [(int(bytes(s["cls"])), bytes(s["__key__"]), bytes(s["__url__"])[-5:]) for s in dataset]
    assert sorted(found) == [(i, f"folder/{i:04}".encode(), b"a.tar" if i < 60 else b"b.tar") for i in range(100)]
    assert [i for i, _, _ in found] != list(range(100))
    assert len(penstock.TarDataset(tars, ["cls"]).global_shuffle(seed=3)) == 100


def test_shards_and_turns(tars):
    assert labels(penstock.TarDataset(tars, ["cls"]).shard(4, 1)) == list(range(1, 100, 4))
    turns = labels(penstock.TarDataset(tars, ["cls"], num_parallel_reads=2))
    assert turns[:6] == [0, 60, 1, 61, 2, 62] and sorted(turns) == list(range(100))


@pytest.mark.parametrize("ending", [".tar.gz", ".tgz"])
def test_compressed_files_are_known_by_their_names(tmp_path, tars, ending):
    (tmp_path / f"packed{ending}").write_bytes(gzip.compress((tmp_path / "a.tar").read_bytes()))
    assert labels(penstock.TarDataset(tmp_path / f"packed{ending}", ["cls"])) == list(range(60))
    with pytest.raises(ValueError, match="different compressions"):
        penstock.TarDataset([tmp_path / "a.tar", tmp_path / f"packed{ending}"], ["cls"])


def test_a_missing_member_is_a_default_or_an_error(tmp_path):
    path = write_tar(tmp_path / "a.tar", [("1.jpg", b"x"), ("2.cls", b"2")])
    dataset = penstock.TarDataset(path, ["jpg", "cls"], defaults={"jpg": b"", "cls": b"-1"})
    assert [(bytes(s["jpg"]), bytes(s["cls"])) for s in dataset] == [(b"x", b"-1"), (b"", b"2")]
    with pytest.raises(penstock.DataLossError, match=r"the sample 1 has no member of the extension cls; .*a\.tar, record 0, offset 0"):
        list(penstock.TarDataset(path, ["cls"]))
    assert labels(penstock.TarDataset(path, ["cls"]).ignore_errors()) == [2]


def test_a_damaged_header_costs_one_sample(tmp_path):
    path = tmp_path / "a.tar"
    write_tar(path, [(f"{i}.cls", str(i).encode()) for i in range(10)], tarfile.USTAR_FORMAT)
    damaged = bytearray(path.read_bytes())
    damaged[4 * 1024 + 110] ^= 4
    path.write_bytes(damaged)
    # The header may have been one of record 3, which is not given therefore.
    with pytest.raises(penstock.DataLossError, match=r"no tar header: its checksum does not hold .*a\.tar, record 3, offset 4096\)"):
        list(penstock.TarDataset(path, ["cls"]))
    dataset = penstock.TarDataset(path, ["cls"], on_damage="skip_record")
    assert labels(dataset) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert sorted(labels(penstock.TarDataset(path, ["cls"], on_damage="skip_record").global_shuffle(seed=1))) == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_mistakes_are_told_before_anything_runs(tars):
    for arguments, error in [
        (([],), "there are none"),
        ((["a/b"],), "what is behind the first dot"),
        (([".jpg"],), "what is behind the first dot"),
        ((["jpg"], {"png": b""}), "defaults of what is no feature"),
    ]:
        with pytest.raises(ValueError, match=error):
            penstock.TarDataset(tars, *arguments)
    with pytest.raises(TypeError, match="a default is bytes"):
        penstock.TarDataset(tars, ["jpg"], {"jpg": 1})
