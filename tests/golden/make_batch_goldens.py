"""Writes batch.json: features of any length in batches, padded batches and ragged batches, as tf.data makes them.

Run by hand, with a Python that has TensorFlow:  python tests/golden/make_batch_goldens.py

A case is a spec's last stages and what tf.data makes of the same records: steps of tensors, each with its dtype, its shape and its flat
values (strings and floats as hexadecimal digits of their bytes), and for a ragged one its row splits. Errors are asked of tf.data too; the text in
`error` is then Penstock's.
"""

import json
import pathlib

import numpy as np
import tensorflow as tf

HERE = pathlib.Path(__file__).parent
cases, records = [], []

# --- records: lists of every kind, of 0 to 6 values, some missing ---


def wide(i):
    """Floats on both sides of every bend of the types of 16 bits."""
    bends = [0.0, 2.0**-24, 2.0**-25, 2.0**-14, 1.0, 1 + 2.0**-11, 1 + 2.0**-8, 65504.0, 65520.0, 2.0**127 * 1.998, np.inf, np.nan]
    bits = np.float32(bends[i % len(bends)]).view(np.uint32) if i % 2 == 0 else np.uint32(0x9E3779B9 * (i + 1) & 0xFFFFFFFF)
    near = [np.uint32((int(bits) + step) & 0xFFFFFFFF).view(np.float32) for step in (-1, 0, 1)]
    return [float(value) if value == value else np.nan for value in near] + [i - 11.0]


def example(i):
    feature = {
        "id": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
        "pair": tf.train.Feature(float_list=tf.train.FloatList(value=[i / 4, -i])),
        "names": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"n%d" % i, b"", b"third" * (i % 3)])),
        "wide": tf.train.Feature(float_list=tf.train.FloatList(value=wide(i))),
        "title": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"title %d" % i])),
    }
    if i % 5 != 2:
        values = [(-1) ** k * (i + 1) ** (k * 3) for k in range((i * 3) % 7)]
        feature["ids"] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    if i % 5 != 3:
        feature["marks"] = tf.train.Feature(
            float_list=tf.train.FloatList(value=[1.5 * i + k for k in range((i * 2) % 5)]))
    if i % 5 != 4:
        words = [b"w" * ((i + k) % 4) + b"%d" % k for k in range(i % 4)]
        feature["words"] = tf.train.Feature(bytes_list=tf.train.BytesList(value=words))
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


records = [example(i) for i in range(23)]
ANY = dict(shape=[], allow_missing=True)
KINDS = {
    "id": ("int64 {}", tf.io.FixedLenFeature([], tf.int64)),
    "pair": ("float { shape: 2 }", tf.io.FixedLenFeature([2], tf.float32)),
    "names": ("bytes { shape: 3 }", tf.io.FixedLenFeature([3], tf.string)),
    "wide": ("float { shape: 4 }", tf.io.FixedLenFeature([4], tf.float32)),
    "title": ("bytes {}", tf.io.FixedLenFeature([], tf.string)),
    "ids": ("int64 { variable_length: true }", tf.io.FixedLenSequenceFeature(dtype=tf.int64, **ANY)),
    "marks": ("float { variable_length: true }", tf.io.FixedLenSequenceFeature(dtype=tf.float32, **ANY)),
    "words": ("bytes { variable_length: true }", tf.io.FixedLenSequenceFeature(dtype=tf.string, **ANY)),
}
ALL = [name for name in KINDS if name != "wide"]


def parsed(*names):
    text = "tfrecord { files: 'FOLDER/lists.tfrecord' } | parse_example { %s }" % " ".join(
        f"feature {{ key: '{name}' {KINDS[name][0]} }}" for name in names)
    features = {name: KINDS[name][1] for name in names}
    return text, tf.data.Dataset.from_tensor_slices(records).map(lambda record: tf.io.parse_single_example(record, features))


def flat(array):
    array = np.asarray(array)
    if array.dtype == object:
        return [bytes(value).hex() for value in array.reshape(-1)]
    if array.dtype.kind in "biu":
        return [int(value) for value in array.reshape(-1)]
    return [array.reshape(-1)[i : i + 1].tobytes().hex() for i in range(array.size)]


def show(tensor):
    if isinstance(tensor, tf.RaggedTensor):
        return {
            "dtype": tensor.dtype.name,
            "splits": [splits.numpy().tolist() for splits in tensor.nested_row_splits],
            "inner": list(tensor.flat_values.shape[1:]),
            "values": flat(tensor.flat_values.numpy()),
        }
    return {"dtype": tensor.dtype.name, "shape": list(tensor.shape), "values": flat(tensor.numpy())}


def case(chain, error=""):
    text, dataset = chain
    steps = []
    try:
        for element in dataset:
            steps.append({name: show(tensor) for name, tensor in element.items()})
        assert not error, text
    except (tf.errors.InvalidArgumentError, tf.errors.DataLossError):
        assert error, text
    golden = {"spec": text, "steps": steps}
    if error:
        golden["error"] = error
    cases.append(golden)


def then(chain, text, make):
    return f"{chain[0]} | {text}", make(chain[1])


# --- elements alone ---

case(parsed(*ALL))
case(then(parsed("words", "ids"), "take { count: 3 }", lambda d: d.take(3)))

# --- batch: rows of one shape ---

for size, drop in ((1, False), (4, False), (4, True)):
    case(then(parsed("id", "pair", "names", "title"), f"batch {{ batch_size: {size} drop_remainder: {str(drop).lower()} }}",
              lambda d: d.batch(size, drop)))
case(then(parsed(*ALL), "batch { batch_size: 1 }", lambda d: d.batch(1)))
for names in (["ids"], ["words"], ["id", "marks"]):
    case(then(parsed(*names), "batch { batch_size: 3 }", lambda d: d.batch(3)), error="the rows of a batch have different shapes")

# --- padded_batch ---


def shape_text(shapes):
    return " ".join(f"padded_shape {{ feature: '{name}' " + " ".join(f"shape: {size}" for size in shape) + " }"
                    for name, shape in shapes.items())


VALUE_FIELDS = {int: "int64_value", float: "float_value", bytes: "bytes_value", bool: "bool_value"}


def value_text(values):
    return " ".join(
        f"padding_value {{ feature: '{name}' {VALUE_FIELDS[type(value)]}: "
        + (f"'{value.decode()}'" if isinstance(value, bytes) else str(value).lower()) + " }"
        for name, value in values.items())


def padded(names, size, shapes=None, values=None, drop=None, error=""):
    shapes, values = shapes or {}, values or {}
    text = f"padded_batch {{ batch_size: {size} {shape_text(shapes)} {value_text(values)}"
    text += "" if drop is None else f" drop_remainder: {str(drop).lower()}"
    chain = parsed(*names)
    all_shapes = {name: shapes.get(name, list(chain[1].element_spec[name].shape)) for name in names}
    all_shapes = {name: [None if size in (-1, None) else size for size in shape] for name, shape in all_shapes.items()}
    zeros = {"words": b"", "names": b"", "title": b""}
    typed = {name: tf.constant(values.get(name, zeros.get(name, 0)), chain[1].element_spec[name].dtype) for name in names}
    case(then(chain, text + " }", lambda d: d.padded_batch(size, all_shapes, typed, bool(drop))), error)


for size in (1, 4, 23, 50):
    for drop in (None, False, True):
        padded(ALL, size, drop=drop)
padded(ALL, 5, values={"ids": -1, "marks": 0.5, "words": b"<pad>"})
padded(["ids", "words"], 4, shapes={"ids": [6], "words": [3]}, values={"ids": 7})
padded(["ids", "words"], 4, shapes={"ids": [9], "words": [-1]}, values={"words": b"-"})
padded(["pair", "names", "id"], 4, shapes={"pair": [5], "names": [4]}, values={"pair": -2.25, "names": b"none"})
padded(["marks"], 7, shapes={"marks": [-1]}, values={"marks": float(2**70)})
padded(["ids"], 4, shapes={"ids": [5]}, error="larger than what it is to be padded to")
padded(["words"], 23, shapes={"words": [2]}, error="larger than what it is to be padded to")
padded(["id", "marks"], 2, shapes={"marks": [3]}, error="larger than what it is to be padded to")

# --- ragged_batch ---

for size in (1, 4, 23, 50):
    for drop in (False, True):
        text = f"ragged_batch {{ batch_size: {size} drop_remainder: {str(drop).lower()} }}"
        case(then(parsed(*ALL), text, lambda d: d.ragged_batch(size, drop, row_splits_dtype=tf.int64)))

# --- decoded images: two unknown axes, and three ---

def decoded(channels):
    text = ("tfrecord { files: 'FOLDER/images.tfrecord' } | map { out: 'image = decode_jpeg(value, channels=%d)' }" % channels)
    dataset = tf.data.Dataset.from_tensor_slices(images).map(
        lambda contents: {"image": tf.ensure_shape(tf.io.decode_jpeg(contents, channels=channels),
                                                   [None, None, channels or None])})
    return text, dataset


def checked(chain):
    """Images are long: their hash stands for them."""
    text, dataset = chain
    steps = []
    for element in dataset:
        step = {}
        for name, tensor in element.items():
            shown = show(tensor)
            values = tensor.flat_values.numpy() if isinstance(tensor, tf.RaggedTensor) else tensor.numpy()
            shown["values"] = fnv1a(values.tobytes())
            step[name] = shown
        steps.append(step)
    cases.append({"spec": text, "steps": steps})


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return "%016x" % value


images = [tf.io.encode_jpeg(np.random.default_rng(i).integers(0, 255, (3 + i % 3, 5 + i % 2, 3), np.uint8)).numpy() for i in range(7)]
for channels in (1, 3):
    checked(decoded(channels))
    checked(then(decoded(channels), "padded_batch { batch_size: 3 padding_value { feature: 'image' int64_value: 9 } }",
                 lambda d: d.padded_batch(3, padding_values={"image": np.uint8(9)})))
    checked(then(decoded(channels), "ragged_batch { batch_size: 3 }", lambda d: d.ragged_batch(3, row_splits_dtype=tf.int64)))
    checked(then(decoded(channels), "padded_batch { batch_size: 4 padded_shape { feature: 'image' shape: [8, -1, %d] } }" % channels,
                 lambda d: d.padded_batch(4, {"image": [8, None, channels]})))
checked(then(decoded(0), "ragged_batch { batch_size: 3 }", lambda d: d.ragged_batch(3, row_splits_dtype=tf.int64)))

# --- every type ---

SMALL = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64".split()


def every_type():
    outs = " ".join(f"out: '{name} = {name}(float32(ids) / float32(ids) * 3)'" for name in SMALL)
    outs += " out: 'words = words' out: 'wide16 = float16(wide)' out: 'widebf = bfloat16(wide)' out: 'names = names'"

    def make(e):
        values = tf.cast(e["ids"], tf.float32) / tf.cast(e["ids"], tf.float32) * 3
        cast = {name: tf.cast(values, tf.as_dtype(name)) for name in SMALL}
        return cast | {"words": e["words"], "wide16": tf.cast(e["wide"], tf.float16), "widebf": tf.cast(e["wide"], tf.bfloat16),
                       "names": e["names"]}

    return then(parsed("ids", "words", "wide", "names"), f"map {{ {outs} }}", lambda d: d.map(make))


PADS = {"bool": True, "int8": -3, "uint8": 200, "int16": -300, "uint16": 60000, "int32": -70000, "uint32": 4000000000, "int64": -(2**40),
        "uint64": 2**62, "float16": 0.1, "bfloat16": 0.1, "float32": 0.1, "float64": 0.1, "words": b"pad"}
case(every_type())
case(then(every_type(), "ragged_batch { batch_size: 5 }", lambda d: d.ragged_batch(5, row_splits_dtype=tf.int64)))


def typed_pads(spec):
    return {name: tf.constant(PADS.get(name, b"" if part.dtype == tf.string else 0), part.dtype) for name, part in spec.items()}


case(then(every_type(), f"padded_batch {{ batch_size: 5 {value_text(PADS)} }}",
          lambda d: d.padded_batch(5, padding_values=typed_pads(d.element_spec))))

# --- arithmetic on rows of any length ---

chain = then(parsed("ids", "marks", "title", "words"),
             "map { let: 'm = marks * 2 - 1' out: 'a = m * marks' out: 'b = ids > 3' out: 'c = float32(ids)' out: 'words = words' "
             "out: 'title = title' }",
             lambda d: d.map(lambda e: {"a": (e["marks"] * 2 - 1) * e["marks"], "b": e["ids"] > 3,
                                        "c": tf.cast(e["ids"], tf.float32), "words": e["words"], "title": e["title"]}))
case(chain)
case(then(chain, "ragged_batch { batch_size: 6 }", lambda d: d.ragged_batch(6, row_splits_dtype=tf.int64)))
case(then(chain, "padded_batch { batch_size: 6 padding_value { feature: 'b' bool_value: true } }",
          lambda d: d.padded_batch(6, padding_values={"a": 0.0, "b": True, "c": 0.0, "words": b"", "title": b""})))


def frame(payloads):
    path = pathlib.Path("/tmp") / "frames.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for payload in payloads:
            writer.write(payload)
    data = path.read_bytes()
    path.unlink()
    return data.hex()


document = {"made_by": f"TensorFlow {tf.__version__}",
            "files": {"lists.tfrecord": frame(records), "images.tfrecord": frame(images)}, "cases": cases}
(HERE / "batch.json").write_text(json.dumps(document, separators=(",", ":")).replace('{"spec"', '\n{"spec"') + "\n")
print(len(cases), "cases")
