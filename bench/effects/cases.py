"""The levers of tf.data's performance guide (https://www.tensorflow.org/guide/data_performance): each a dataset that reads the same in
tf.data and in Penstock.

A case is a function of a namespace `t`, which holds either's names (Dataset, the readers, io, np), of `tuned`, whether the lever is pulled,
and of the folder with the files. Where Penstock has no such lever `tuned` is what a user would try. Batches are of 64 examples.
"""

import gzip
import pathlib
import struct
import sys
import tempfile
import zlib

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests/e2e"))
import tfrecord_files  # noqa: E402

BATCH = 64
IMAGE = (64, 64, 3)
# Seconds that the trainer takes for a batch, where a case has a trainer.
STEP_SECONDS = {"sequential": 0.004, "prefetch": 0.004}


def _parallel(t, tuned):
    return {"num_parallel_calls": t.AUTOTUNE, "deterministic": False} if tuned else {}


def _slow(t):
    """A source that costs arithmetic: about 50 microseconds an element in one thread."""

    def compute(x):
        row = x.astype(t.np.float32) + t.np.arange(2048, dtype=t.np.float32)
        for _ in range(4):
            row = t.np.tanh(t.np.sin(row) * t.np.float32(3.0))
        return row

    return t.Dataset.range(1 << 40), compute


def sequential(t, tuned, folder):
    source, compute = _slow(t)
    return source.map(compute).batch(BATCH)


def prefetch(t, tuned, folder):
    source, compute = _slow(t)
    dataset = source.map(compute).batch(BATCH)
    return dataset.prefetch(t.AUTOTUNE if t.is_tensorflow else 4) if tuned else dataset


def parallel_map(t, tuned, folder):
    source, compute = _slow(t)
    dataset = source.map(compute, **_parallel(t, tuned)).batch(BATCH)
    return dataset.prefetch(t.AUTOTUNE if t.is_tensorflow else 4) if tuned else dataset


def parallel_interleave(t, tuned, folder):
    """Compressed files, whose reading costs."""
    files = t.Dataset.list_files(f"{folder}/zipped-*.tfrecord.gz", shuffle=False).repeat()
    options = {"cycle_length": 4, **_parallel(t, tuned)} if tuned else {"cycle_length": 4}
    return files.interleave(lambda path: t.TFRecordDataset(path, compression_type="GZIP"), **options).batch(BATCH)


FEATURES = {"image": ([], "string"), "label": ([], "int64")}


def _images(t, folder):
    features = {key: t.io.FixedLenFeature(shape, getattr(t, dtype)) for key, (shape, dtype) in FEATURES.items()}

    def decode(record):
        parsed = t.io.parse_single_example(record, features)
        pixels = t.io.decode_raw(t.io.decode_compressed(parsed["image"], "ZLIB"), t.uint8, fixed_length=64 * 64 * 3)
        image = t.np.reshape(pixels, IMAGE).astype(t.np.float32) / t.np.float32(127.5) - t.np.float32(1.0)
        return image, parsed["label"]

    return t.TFRecordDataset(f"{folder}/images.tfrecord"), decode


def cache_memory(t, tuned, folder):
    source, decode = _images(t, folder)
    dataset = source.map(decode, **_parallel(t, tuned))
    return (dataset.cache() if tuned or not t.is_tensorflow else dataset).repeat().batch(BATCH)


def cache_file(t, tuned, folder):
    """The same in a file of its own for each run; the pass that fills it is measured too."""
    source, decode = _images(t, folder)
    dataset = source.map(decode, **_parallel(t, tuned))
    if tuned or not t.is_tensorflow:
        dataset = dataset.cache(str(pathlib.Path(tempfile.mkdtemp(dir=folder)) / "cache"))
    return dataset.repeat().batch(BATCH)


def cache_shuffled(t, tuned, folder):
    """Large elements that are ready: what remains is a copy of each from a random place of 350 MB."""

    def make(x):
        return x.astype(t.np.float32) + t.np.arange(192 * 192 * 3, dtype=t.np.float32)

    dataset = t.Dataset.range(800).map(make, **_parallel(t, tuned)).cache().shuffle(800).repeat().batch(BATCH // 2)
    return dataset.prefetch(t.AUTOTUNE if t.is_tensorflow else 4) if tuned else dataset


def augmentation_after_cache(t, tuned, folder):
    source, decode = _images(t, folder)
    dataset = source.map(decode, **_parallel(t, tuned)).cache().repeat()
    dataset = dataset.map(lambda image, label: (image[:, ::-1], label), **_parallel(t, tuned)).batch(BATCH)
    return dataset.prefetch(t.AUTOTUNE if t.is_tensorflow else 4) if tuned else dataset


def vectorised_map(t, tuned, folder):
    numbers = t.Dataset.range(1 << 40)
    if tuned:
        return numbers.batch(BATCH * 16).map(lambda x: x * 2 + 1)
    return numbers.map(lambda x: x * 2 + 1).batch(BATCH * 16)


def real_files(t, tuned, folder):
    """All of it on files: read, parse, inflate, arithmetic, batches."""
    source, decode = _images(t, folder)
    dataset = source.repeat().map(decode, **_parallel(t, tuned)).batch(BATCH)
    return dataset.prefetch(t.AUTOTUNE if t.is_tensorflow else 4) if tuned else dataset


def parse_10_features(t, tuned, folder):
    """Ten features of mixed kinds. Both sides parse whole batches, which is tf.data's better way."""
    features = {
        "id": t.io.FixedLenFeature([], t.int64),
        "weight": t.io.FixedLenFeature([], t.float32),
        "name": t.io.FixedLenFeature([], t.string),
        "vector": t.io.FixedLenFeature([16], t.float32),
        "counts": t.io.FixedLenFeature([8], t.int64),
        "absent": t.io.FixedLenFeature([], t.int64, 7),
        "tags": t.io.VarLenFeature(t.string),
        "ids": t.io.VarLenFeature(t.int64),
        "steps": t.io.FixedLenSequenceFeature([], t.float32, allow_missing=True),
        "tokens": t.io.RaggedFeature(t.int64),
    }
    records = t.TFRecordDataset(f"{folder}/mixed.tfrecord").repeat().batch(BATCH * 8)
    dataset = records.map(lambda r: t.io.parse_example(r, features), **_parallel(t, tuned))
    return dataset.prefetch(t.AUTOTUNE if t.is_tensorflow else 4) if tuned else dataset


CASES = {
    case.__name__: case
    for case in (
        sequential,
        prefetch,
        parallel_interleave,
        parallel_map,
        cache_memory,
        cache_file,
        cache_shuffled,
        vectorised_map,
        augmentation_after_cache,
        real_files,
        parse_10_features,
    )
}


def write_files(folder, scale):
    """The files of all cases; `scale` multiplies their records."""
    folder = pathlib.Path(folder)
    dice = numpy.random.default_rng(1)
    for i in range(8):
        # Text that deflate has to work on.
        rows = [dice.integers(97, 105, 2048).astype(numpy.uint8).tobytes() for _ in range(400 * scale)]
        data = b"".join(_framed(row) for row in rows)
        (folder / f"zipped-{i}.tfrecord.gz").write_bytes(gzip.compress(data, 6))
    images = []
    for i in range(300 * scale):
        pixels = (numpy.add.outer(numpy.arange(64), numpy.arange(64 * 3)) + i).astype(numpy.uint8)
        images.append(tfrecord_files.example(image=zlib.compress(pixels.tobytes()), label=i))
    (folder / "images.tfrecord").write_bytes(b"".join(map(_framed, images)))
    mixed = [
        tfrecord_files.example(
            id=i, weight=i / 2, name=b"name of %d" % i, vector=[float(x) for x in range(16)], counts=[i * x for x in range(8)],
            tags=[b"tag"] * (1 + i % 3), ids=list(range(1 + i % 7)), steps=[0.5] * (1 + i % 5), tokens=list(range(1 + i % 20)),
        )
        for i in range(2000 * scale)
    ]  # fmt: skip
    (folder / "mixed.tfrecord").write_bytes(b"".join(map(_framed, mixed)))


_TABLES = []


def _crc32c(data):
    """With NumPy's tables, eight bytes at a time: the tests' own is for small files."""
    if not _TABLES:
        _TABLES.append(tfrecord_files._TABLE)
        for _ in range(7):
            last = _TABLES[-1]
            _TABLES.append([(crc >> 8) ^ _TABLES[0][crc & 0xFF] for crc in last])
    crc = 0xFFFFFFFF
    whole = len(data) & ~7
    for low, high in struct.iter_unpack("<II", data[:whole]):
        low ^= crc
        crc = (
            _TABLES[7][low & 0xFF] ^ _TABLES[6][low >> 8 & 0xFF] ^ _TABLES[5][low >> 16 & 0xFF] ^ _TABLES[4][low >> 24]
            ^ _TABLES[3][high & 0xFF] ^ _TABLES[2][high >> 8 & 0xFF] ^ _TABLES[1][high >> 16 & 0xFF] ^ _TABLES[0][high >> 24]
        )  # fmt: skip
    for byte in data[whole:]:
        crc = (crc >> 8) ^ _TABLES[0][(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _masked(data):
    crc = _crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _framed(payload):
    header = struct.pack("<Q", len(payload))
    return header + _masked(header) + payload + _masked(payload)
