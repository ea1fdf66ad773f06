"""The sources of examples/sources with the packages themselves: what they read, and that a resume is exact.

With a Python that has these packages, and the package penstock and its programs on their paths: python -m pytest tests/frameworks/test_sources.py
"""

import pathlib
import sys
import threading

import numpy as np
import pytest

import penstock

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/sources"
sys.path.insert(0, str(EXAMPLES))


def plain(value):
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return np.asarray(value).tolist()


def check_resume(dataset, whole, at):
    """The rest behind `at` elements is what it is without a stop."""
    iterator = iter(dataset)
    for _ in range(at):
        next(iterator)
    state = iterator.state_dict()
    iterator.close()
    later = iter(dataset)
    later.load_state_dict(state)
    assert [plain(element) for element in later] == whole[at:]


def test_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    from hdf5_rows import Hdf5Rows

    images = np.random.default_rng(1).integers(0, 255, (200, 4, 5), np.uint8)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("image", data=images, chunks=(16, 4, 5), compression="gzip")
        file["label"] = np.arange(200)
    dataset = penstock.Dataset.from_python(Hdf5Rows(str(tmp_path / "x.h5"), ["image", "label"]))
    assert len(dataset) == 200
    whole = [plain(row) for row in dataset]
    assert whole == [{"image": images[i].tolist(), "label": i} for i in range(200)]
    shuffled = dataset.global_shuffle(seed=1)
    order = [plain(row) for row in shuffled]
    assert sorted(row["label"] for row in order) == list(range(200)) and order != whole
    check_resume(penstock.Dataset.from_python(Hdf5Rows(str(tmp_path / "x.h5"), ["image", "label"])).global_shuffle(seed=1), order, 77)


def test_zarr(tmp_path):
    zarr = pytest.importorskip("zarr")
    from zarr_rows import ZarrRows

    group = zarr.open_group(str(tmp_path / "x.zarr"), mode="w")
    values = np.random.default_rng(1).normal(size=(150, 3)).astype(np.float32)
    group.create_array("x", data=values, chunks=(16, 3))
    group.create_array("y", data=np.arange(150))
    dataset = penstock.Dataset.from_python(ZarrRows(str(tmp_path / "x.zarr"), ["x", "y"]))
    whole = [plain(row) for row in dataset]
    assert len(dataset) == 150 and whole == [{"x": values[i].tolist(), "y": i} for i in range(150)]
    check_resume(dataset, whole, 33)


def test_lmdb(tmp_path):
    lmdb = pytest.importorskip("lmdb")
    from lmdb_values import LmdbValues

    with lmdb.open(str(tmp_path / "x.lmdb")) as base, base.begin(write=True) as transaction:
        for i in range(500):
            transaction.put(f"{i:05}".encode(), f"value {i}".encode())
    dataset = penstock.Dataset.from_source(LmdbValues(str(tmp_path / "x.lmdb")), block_records=32)
    assert "a resume begins at a state" in dataset.explain()
    whole = [plain(value) for value in dataset]
    assert whole == [f"value {i}".encode() for i in range(500)]
    check_resume(dataset, whole, 333)
    parts = penstock.Dataset.from_source(LmdbValues(str(tmp_path / "x.lmdb")), num_shards=3, block_records=10)
    assert sorted(plain(value) for value in parts) == sorted(whole)
    check_resume(parts, [plain(value) for value in parts], 222)


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_avro(tmp_path, codec):
    fastavro = pytest.importorskip("fastavro")
    from avro_records import AvroRecords

    fields = [{"name": "x", "type": "long"}, {"name": "name", "type": "string"}]
    schema = fastavro.parse_schema({"type": "record", "name": "row", "fields": fields})
    rows = [{"x": i, "name": f"name {i}"} for i in range(1000)]
    with open(tmp_path / "x.avro", "wb") as file:
        fastavro.writer(file, schema, rows, codec=codec, sync_interval=500)
    output = {"x": penstock.TensorSpec((), np.int64), "name": penstock.TensorSpec((), penstock.string)}
    dataset = penstock.Dataset.from_source(AvroRecords(str(tmp_path / "x.avro")), output, block_records=30)
    whole = [plain(row) for row in dataset]
    assert whole == [{"x": i, "name": f"name {i}".encode()} for i in range(1000)]
    check_resume(dataset, whole, 713)
    with open(tmp_path / "empty.avro", "wb") as file:
        fastavro.writer(file, schema, [])
    assert list(penstock.Dataset.from_source(AvroRecords(str(tmp_path / "empty.avro")), output)) == []


def test_array_record(tmp_path):
    """Its own data source has a length and numbers: nothing is to be written."""
    module = pytest.importorskip("array_record.python.array_record_module")
    data_source = pytest.importorskip("array_record.python.array_record_data_source")
    writer = module.ArrayRecordWriter(str(tmp_path / "x.array_record"), "group_size:1")
    for i in range(300):
        writer.write(f"record {i}".encode())
    writer.close()
    source = data_source.ArrayRecordDataSource(str(tmp_path / "x.array_record"))
    dataset = penstock.Dataset.from_python(source, output=penstock.TensorSpec((), penstock.string))
    assert len(dataset) == 300
    order = [plain(record) for record in dataset.global_shuffle(seed=1)]
    assert sorted(order) == sorted(f"record {i}".encode() for i in range(300))
    assert [plain(record) for record in dataset] == [f"record {i}".encode() for i in range(300)]


def test_flight():
    pa = pytest.importorskip("pyarrow")
    flight = pytest.importorskip("pyarrow.flight")
    from flight_batches import FlightBatches

    table = pa.table({"x": np.arange(10_000), "y": np.arange(10_000) / 4})

    class Server(flight.FlightServerBase):
        def do_get(self, context, ticket):
            assert ticket.ticket == b"train"
            return flight.RecordBatchStream(pa.Table.from_batches(table.to_batches(max_chunksize=700)))

    with Server("grpc://127.0.0.1:0") as server:
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            source = FlightBatches(f"grpc://127.0.0.1:{server.port}", b"train", ["x", "y"])
            output = {"x": penstock.TensorSpec((), np.int64), "y": penstock.TensorSpec((), np.float64)}
            dataset = penstock.Dataset.from_source(source, output).batch(64)
            assert "goes through it again from its first element" in dataset.explain()
            whole = [plain(batch) for batch in dataset]
            assert sum((batch["x"] for batch in whole), []) == list(range(10_000)) and whole[5]["y"][3] == 323 / 4
            check_resume(dataset, whole, 99)
        finally:
            server.shutdown()
            thread.join()


def write_log(folder, messages, segment):
    folder.mkdir()
    for start in range(0, len(messages), segment):
        data = b"".join(len(message).to_bytes(4, "big") + message for message in messages[start : start + segment])
        (folder / f"{start:020}.log").write_bytes(data)


def test_a_log(tmp_path):
    from log_messages import LogMessages

    messages = [f"message {i}".encode() * (i % 5) for i in range(1000)]
    write_log(tmp_path / "topic", messages, 300)
    dataset = penstock.Dataset.from_source(LogMessages(str(tmp_path / "topic")), block_records=50)
    whole = [plain(message) for message in dataset]
    assert whole == messages
    for at in (1, 299, 300, 750):
        check_resume(dataset, whole, at)
    last = tmp_path / "topic" / f"{900:020}.log"
    last.write_bytes(last.read_bytes()[:-3])
    with pytest.raises(penstock.DataLossError, match="0900.log is cut in message 999"):
        list(dataset)


def test_files_of_fsspec(tmp_path):
    pytest.importorskip("fsspec")
    from fsspec_lines import FsspecLines

    addresses = []
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text("".join(f"line {number} {i}\n" for i in range(200)))
        addresses.append(f"file://{tmp_path}/{number}.txt")
    dataset = penstock.Dataset.from_source(FsspecLines(addresses), block_records=64)
    whole = [plain(line) for line in dataset]
    assert whole == [f"line {number} {i}".encode() for number in range(3) for i in range(200)]
    check_resume(dataset, whole, 210)
    parts = penstock.Dataset.from_source(FsspecLines(addresses), num_shards=3)
    assert sorted(plain(line) for line in parts) == sorted(whole)
