"""Writes order.json: small pipelines of sources and order ops, and the elements that tf.data makes of each.

Run by hand, with a Python that has TensorFlow:  python tests/golden/make_order_goldens.py

A case is built once, as a text of stages and as a tf.data.Dataset side by side (class Chain). Its result is a list of steps (batches, or
elements without `batch`), each with its rows and the values of every tensor: int64 numbers, or the hexadecimal digits of strings and of the bytes of other numbers. Where
tf.data's own behaviour is a defect, `differs` says what it does, and the case holds what Penstock promises instead.
"""

import gzip
import io
import json
import pathlib
import random
import tempfile
import zlib

import numpy as np
import tensorflow as tf

FOLDER = pathlib.Path(tempfile.mkdtemp())
COMPRESS = {"": bytes, "GZIP": lambda b: gzip.compress(b, mtime=0), "ZLIB": zlib.compress}
# Stands in texts for the folder with the files.
PLACE = "FOLDER/"
files, cases = {}, []


def write(name, data):
    assert files.setdefault(name, data.hex()) == data.hex()
    (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
    (FOLDER / name).write_bytes(data)
    return name


def frame(payloads, compression=""):
    path = FOLDER / "frames"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for payload in payloads:
            writer.write(payload)
    return COMPRESS[compression](path.read_bytes())


def literal(value):
    """Of the text format of Protobuf."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value) if isinstance(value, int) else f'"{value}"'


def stage(op, **options):
    inside = " ".join(f"{name}: {literal(value)}" for name, value in options.items() if value is not None)
    return f"stage {{ {op} {{ {inside} }} }}"


class Chain:
    def __init__(self, text, dataset):
        self.text = text
        self.dataset = dataset

    def then(self, text, dataset):
        return Chain(f"{self.text} {text}", dataset)

    def take(self, count):
        return self.then(stage("take", count=count), self.dataset.take(count))

    def skip(self, count):
        return self.then(stage("skip", count=count), self.dataset.skip(count))

    def shard(self, num_shards, index):
        return self.then(stage("shard", num_shards=num_shards, index=index), self.dataset.shard(num_shards, index))

    def repeat(self, count=None):
        return self.then(stage("repeat", count=count), self.dataset.repeat(count))

    def batch(self, size, drop_remainder=None):
        return self.then(stage("batch", batch_size=size, drop_remainder=drop_remainder),
                         self.dataset.batch(size, bool(drop_remainder)))

    def enumerate(self, start=None):
        return self.then(stage("enumerate", start=start), self.dataset.enumerate(start or 0))

    def shuffle_of_one(self):
        return self.then(stage("shuffle", buffer_size=1, seed=3), self.dataset.shuffle(1))

    def prefetch(self, size):
        return self.then(stage("prefetch", buffer_size=size), self.dataset.prefetch(size))

    def dict_of(self, **factors):
        """A dict of multiples of a lone number."""
        outs = " ".join(f'out: "{name} = value * {factor}"' for name, factor in factors.items())
        return self.then(f"stage {{ map {{ {outs} }} }}",
                         self.dataset.map(lambda x: {name: x * factor for name, factor in factors.items()}))

    def filter(self, predicate, function):
        """`predicate` is the condition's text, `function` the same in TensorFlow."""
        return self.then(f'stage {{ filter {{ predicate: "{predicate}" }} }}', self.dataset.filter(function))

    def take_while(self, predicate, function):
        return self.then(f'stage {{ take_while {{ predicate: "{predicate}" }} }}', self.dataset.take_while(function))

    def map(self, function, **outs):
        """`outs` are the expressions' texts, `function` the same in TensorFlow, as a dict."""
        text = " ".join(f'out: "{name} = {expression}"' for name, expression in outs.items())
        return self.then(f"stage {{ map {{ {text} }} }}", self.dataset.map(function))

    def unbatch(self):
        return self.then("stage { unbatch {} }", self.dataset.unbatch())

    def ignore_errors(self):
        return self.then("stage { ignore_errors {} }", self.dataset.ignore_errors())

    def interleave_of(self, inside, function, cycle_length=None, block_length=None):
        """`inside` are the texts of the nested stages, `function` makes the same of an element in TensorFlow."""
        options = "".join(f" {name}: {value}" for name, value in (("cycle_length", cycle_length), ("block_length", block_length)) if value)
        return self.then(f"stage {{ interleave {{ input {{ {inside} }}{options} }} }}",
                         self.dataset.interleave(function, cycle_length=cycle_length or 1, block_length=block_length or 1))

    def flat_map_of(self, inside, function):
        return self.then(f"stage {{ flat_map {{ input {{ {inside} }} }} }}", self.dataset.flat_map(function))

    def interleave(self, nested, cycle_length=None, block_length=None):
        """`nested` makes a Chain of a path, which has no text of its own."""
        options = "".join(f" {name}: {value}" for name, value in (("cycle_length", cycle_length), ("block_length", block_length)) if value)
        return self.then(f"stage {{ interleave {{ input {{ {nested(None).text} }}{options} }} }}",
                         self.dataset.interleave(lambda path: nested(path).dataset, cycle_length=cycle_length or 1,
                                                 block_length=block_length or 1))

    def flat_map(self, nested):
        return self.then(f"stage {{ flat_map {{ input {{ {nested(None).text} }} }} }}",
                         self.dataset.flat_map(lambda path: nested(path).dataset))

    def zip(self, *others):
        return self.then(f"stage {{ zip {{ {inputs(others)} }} }}",
                         tf.data.Dataset.zip((self.dataset, *(other.dataset for other in others))))

    def concatenate(self, *others):
        dataset = self.dataset
        for other in others:
            dataset = dataset.concatenate(other.dataset)
        return self.then(f"stage {{ concatenate {{ {inputs(others)} }} }}", dataset)


def inputs(chains):
    return " ".join(f"input {{ {chain.text} }}" for chain in chains)


def zip_of(*chains):
    """As a source: all inputs in braces."""
    return Chain(f"stage {{ zip {{ {inputs(chains)} }} }}", tf.data.Dataset.zip(tuple(c.dataset for c in chains)))


def concatenate_of(*chains):
    return Chain(f"stage {{ concatenate {{ {inputs(chains)} }} }}", chains[0].concatenate(*chains[1:]).dataset)


def numbers(*arguments):
    """Python's range."""
    start, stop, step = (list(arguments) + [None])[:3] if len(arguments) > 1 else (None, arguments[0], None)
    return Chain(stage("range", start=start, stop=stop, step=step), tf.data.Dataset.range(*arguments))


def of_files(op, names, make, cycle_length=None, block_length=None, **options):
    """A source over files; `make` is the dataset of one path."""
    text = " ".join(f'files: "{PLACE}{name}"' for name in names)
    more = stage(op, **options, cycle_length=cycle_length, block_length=block_length)
    paths = tf.constant([str(FOLDER / name) for name in names])
    dataset = tf.data.Dataset.from_tensor_slices(paths).interleave(
        make, cycle_length=cycle_length or 1, block_length=block_length or 1, num_parallel_calls=None)
    return Chain(more.replace("{  } }", "{ } }").replace(f"{op} {{", f"{op} {{ {text}"), dataset)


def records(*names, compression="", **turns):
    return of_files("tfrecord", names, lambda path: tf.data.TFRecordDataset(path, compression_type=compression),
                    compression=compression or None, **turns)


def lines(*names, compression="", **turns):
    return of_files("text_line", names, lambda path: tf.data.TextLineDataset(path, compression_type=compression),
                    compression=compression or None, **turns)


def pieces(*names, record_bytes, header_bytes=0, footer_bytes=0, compression="", **turns):
    return of_files(
        "fixed_length_record", names,
        lambda path: tf.data.FixedLengthRecordDataset(path, record_bytes, header_bytes, footer_bytes, compression_type=compression),
        record_bytes=record_bytes, header_bytes=header_bytes or None, footer_bytes=footer_bytes or None,
        compression=compression or None, **turns)


def quoted(text):
    """A string of the text format of Protobuf."""
    return '"' + "".join(f"\\{byte:03o}" for byte in text) + '"'


def tensor_text(name, array, dtype=None, shape=True):
    """A tensor of a spec by its values; `dtype`: its name there, if it is to be said."""
    flat_values = np.asarray(array).reshape(-1)
    kind = flat_values.dtype.kind
    field = {"i": "int_value", "u": "uint_value", "f": "value", "b": "int_value", "S": "string_value", "O": "string_value"}[kind]
    write_value = {"S": quoted, "O": quoted, "b": lambda v: str(int(v))}.get(kind, lambda v: repr(v.item()))
    parts = [f"name: {literal(name)}"] * bool(name) + [f"dtype: {literal(dtype)}"] * bool(dtype)
    parts += [f"shape: {size}" for size in np.shape(array) if shape]
    return f"tensor {{ {' '.join(parts + [f'{field}: {write_value(value)}' for value in flat_values])} }}"


def tensors(op, inside, arrays):
    """from_tensors or from_tensor_slices, and tf.data's method of that name over the same arrays."""
    return Chain(f"stage {{ {op} {{ {inside} }} }}", getattr(tf.data.Dataset, op)(arrays))


def slices(array, **options):
    return tensors("from_tensor_slices", tensor_text("", array, **options), array)


def file_tensor(name, path, member=None, **options):
    """A tensor of a spec by its file."""
    more = {"name": name, ("npz" if member else "npy"): PLACE + path, "array": member or None, **options}
    return "tensor { " + " ".join(f"{key}: {literal(value)}" for key, value in more.items() if value) + " }"


def saved(save, *arrays, **named):
    buffer = io.BytesIO()
    save(buffer, *arrays, **named)
    return buffer.getvalue()


def flat(element, path=""):
    """(name, value) of each tensor, named as Penstock names them."""
    if isinstance(element, (dict, tuple)):
        entries = element.items() if isinstance(element, dict) else enumerate(element)
        return [pair for key, value in entries for pair in flat(value, f"{path}/{key}" if path else str(key))]
    return [(path or "value", element)]


def structure(spec):
    """As ring/layout.h writes it, with the keys of dicts sorted."""
    if isinstance(spec, dict):
        return {key: structure(spec[key]) for key in sorted(spec)}
    return [structure(part) for part in spec] if isinstance(spec, tuple) else None


def values(array):
    if isinstance(array, bytes):  # of which NumPy would drop zeros at the end
        return [in_folder(array).hex()]
    array = np.asarray(array).reshape(-1)
    if array.dtype == np.int64:
        return array.tolist()
    return [in_folder(v).hex() if isinstance(v, bytes) else v.tobytes().hex() for v in array]


def in_folder(text):
    """Paths are written from the folder with the files on."""
    return text.removeprefix(f"{FOLDER}/".encode())


def case(name, chain, batched=False, expect=None, error=None, differs=None):
    """`expect` replaces tf.data's elements where `differs` says that it is wrong; `error` is a part of Penstock's message then."""
    steps = expect
    if steps is None:
        steps = []
        for element in chain.dataset.as_numpy_iterator():
            pairs = flat(element)
            rows = len(pairs[0][1]) if batched else 1
            steps.append({"rows": rows, "tensors": {tensor: values(value) for tensor, value in pairs}})
    entry = {"name": name, "spec": chain.text, "structure": structure(chain.dataset.element_spec), "steps": steps}
    for key, value in (("error", error), ("differs", differs)):
        if value is not None:
            entry[key] = value
    cases.append(entry)


def strings(*found):
    return [{"rows": 1, "tensors": {"value": [value.hex()]}} for value in found]


def counting_cases():
    for arguments in [(7,), (0,), (-3,), (2, 9), (9, 2), (3, 3), (0, 10, 3), (0, 9, 3), (10, 0, -3), (5, -5, -5), (5, -5, 2), (-7, -1, 4),
                      (0, 1, 100), (0, -1, -100), (-(1 << 40), 1 << 40, 1 << 39), ((1 << 62), (1 << 62) + 5, 2)]:
        case(f"range{arguments}", numbers(*arguments))
    ten = numbers(10)
    for count in [0, 1, 9, 10, 11, -1]:
        case(f"take({count})", ten.take(count))
        case(f"skip({count})", ten.skip(count))
        case(f"skip({count}) take(2)", ten.skip(count).take(2))
    for num_shards, index in [(1, 0), (3, 0), (3, 1), (3, 2), (10, 9), (11, 10), (20, 4), (20, 15)]:
        case(f"shard({num_shards}, {index})", ten.shard(num_shards, index))
        case(f"shard({num_shards}, {index}) repeat(2)", ten.shard(num_shards, index).repeat(2))
        case(f"repeat(2) shard({num_shards}, {index})", ten.repeat(2).shard(num_shards, index))
    case("shard of a shard", numbers(30).shard(3, 1).shard(2, 1))
    for count in [0, 1, 2, 3]:
        case(f"repeat({count})", numbers(3).repeat(count))
        case(f"repeat({count}) of nothing", numbers(0).repeat(count))
    case("repeat() take(8)", numbers(3).repeat().take(8))
    case("repeat(-1) skip(4) take(8)", numbers(3).repeat(-1).skip(4).take(8))
    case("repeat in repeat", numbers(2).repeat(2).skip(1).repeat(2))
    case("take in repeat", ten.take(3).repeat(3).skip(2).take(6))
    for size in [1, 3, 5, 10, 11]:
        for drop in [None, False, True]:
            case(f"batch({size}, {drop})", ten.batch(size, drop), batched=True)
    case("batch repeat", ten.batch(4).repeat(2), batched=True)
    case("batch repeat, dropped", ten.batch(4, True).repeat(2), batched=True)
    case("repeat batch", ten.repeat(2).batch(6), batched=True)
    case("batch take", ten.batch(4).take(2), batched=True)
    case("batch skip", ten.batch(4).skip(2), batched=True)
    case("batch shard", numbers(20).batch(3).shard(3, 1), batched=True)
    case("batch shard repeat skip take", numbers(20).batch(3).shard(2, 1).repeat(3).skip(2).take(5), batched=True)
    case("batch of nothing", numbers(0).batch(4), batched=True)
    case("prefetch and shuffle(1)", ten.shuffle_of_one().prefetch(2).batch(4), batched=True)
    case("shuffle(1) repeat", numbers(3).shuffle_of_one().repeat(2).batch(4), batched=True)
    for start in [None, 0, 5, -2, 1 << 40]:
        case(f"enumerate({start})", numbers(3).enumerate(start))
    case("enumerate repeat", numbers(3).enumerate(1).repeat(2))
    case("repeat enumerate", numbers(3).repeat(2).enumerate(1))
    case("enumerate skip take batch", ten.enumerate(3).skip(4).take(5).batch(2), batched=True)
    case("enumerate of enumerate", numbers(3).enumerate(1).enumerate(10).batch(2), batched=True)
    case("enumerate shard", ten.enumerate().shard(4, 1).enumerate(7))
    case("enumerate of a dict", numbers(3).dict_of(x=2, y=-1).enumerate(4).batch(2), batched=True)


def tuple_cases():
    case("zip, even", zip_of(numbers(4), numbers(10, 14)))
    case("zip, the first is shorter", zip_of(numbers(2), numbers(10, 14), numbers(20, 24)))
    case("zip, the middle is shorter", zip_of(numbers(4), numbers(10, 11), numbers(20, 24)))
    case("zip, the last is empty", zip_of(numbers(4), numbers(10, 14), numbers(0)))
    case("zip of what stands before", numbers(5).zip(numbers(10, 13)).batch(2), batched=True)
    case("zip of zips", zip_of(zip_of(numbers(3), numbers(10, 14)), numbers(20, 24)).batch(2), batched=True)
    case("zip of zips, deep", zip_of(numbers(4), zip_of(numbers(3), zip_of(numbers(10, 14), numbers(20, 24)))))
    case("zip of dicts", zip_of(numbers(5).dict_of(b=2, a=3), numbers(4).dict_of(c=5)).batch(3), batched=True)
    case("zip of a dict and a number", numbers(3).dict_of(x=2).zip(numbers(3)))
    case("zip with endless", zip_of(numbers(5), numbers(2).repeat()).repeat(2).batch(3), batched=True)
    case("zip repeat take", zip_of(numbers(3), numbers(10, 15)).repeat().take(7).batch(2), batched=True)
    case("zip uneven repeat", zip_of(numbers(2), numbers(10, 15)).repeat(3).batch(4, True), batched=True)
    case("zip shard skip", zip_of(numbers(20), numbers(20, 50)).shard(3, 2).skip(1).batch(2), batched=True)
    case("zip enumerate", zip_of(numbers(3), numbers(5, 9)).enumerate(2).batch(2), batched=True)
    case("enumerate in zip", zip_of(numbers(3).enumerate(2), numbers(5, 9)).batch(2), batched=True)
    case("concatenate", numbers(3).concatenate(numbers(10, 12)))
    case("concatenate, 3", concatenate_of(numbers(3), numbers(10, 12), numbers(20, 24)).batch(4), batched=True)
    case("concatenate with nothing", concatenate_of(numbers(0), numbers(2), numbers(0), numbers(5, 6), numbers(0)))
    case("concatenate of concatenates", concatenate_of(numbers(2).concatenate(numbers(10, 11)), numbers(20, 22)).repeat(2).batch(3),
         batched=True)
    case("concatenate of zips", concatenate_of(zip_of(numbers(3), numbers(10, 14)), zip_of(numbers(20, 22), numbers(30, 35))).batch(2),
         batched=True)
    case("concatenate of what is taken", numbers(10).take(2).concatenate(numbers(20, 30).skip(8)).repeat(2).skip(1).batch(3), batched=True)
    case("concatenate of dicts", concatenate_of(numbers(3).dict_of(x=2, y=3), numbers(2).dict_of(x=-1, y=-2)).batch(2), batched=True)
    case("concatenate in zip", zip_of(concatenate_of(numbers(2), numbers(10, 12)), numbers(20, 30)).batch(3), batched=True)
    case("concatenate of enumerates", concatenate_of(numbers(2).enumerate(5), numbers(10, 12).enumerate(3)).enumerate().batch(3),
         batched=True)
    case("concatenate shard", concatenate_of(numbers(5), numbers(10, 15)).shard(3, 1))
    case("repeat in concatenate", concatenate_of(numbers(2).repeat(2), numbers(10, 12)).repeat(2).batch(5), batched=True)


def interleave_cases():
    sizes = [5, 0, 1, 7, 3, 0, 2]
    shards = [write(f"turn-{i}.tfrecord", frame([f"{i}.{n}".encode() for n in range(size)])) for i, size in enumerate(sizes)]
    packed = [write(f"turn-{i}.tfrecord.gz", frame([f"{i}.{n}".encode() for n in range(size)], "GZIP")) for i, size in enumerate(sizes)]
    texts = [write(f"turn-{i}.txt", b"".join(b"%d.%d\n" % (i, n) for n in range(size))) for i, size in enumerate(sizes)]
    fixed = [write(f"turn-{i}.bin", b"".join(b"%d%d" % (i, n) for n in range(size))) for i, size in enumerate(sizes)]
    for turns in [(1, 1), (1, 4), (2, 1), (2, 3), (3, 2), (4, 1), (7, 1), (7, 5), (16, 2)]:
        options = dict(zip(("cycle_length", "block_length"), turns))
        case(f"tfrecord, cycle and block {turns}", records(*shards, **options).batch(4), batched=True)
        case(f"tfrecord, GZIP, cycle and block {turns}", records(*packed, compression="GZIP", **options).batch(4), batched=True)
        case(f"text_line, cycle and block {turns}", lines(*texts, **options).batch(4), batched=True)
        case(f"fixed_length_record, cycle and block {turns}", pieces(*fixed, record_bytes=2, **options).batch(4), batched=True)
    turns = {"cycle_length": 3, "block_length": 2}
    case("turns, repeated", records(*shards, **turns).repeat(2).batch(5), batched=True)
    case("turns, skip", records(*shards, **turns).skip(7).take(6).batch(4), batched=True)
    case("turns, shard", records(*shards, **turns).shard(4, 1))
    case("a list of files keeps its order", records(shards[4], shards[0], shards[2]).batch(4), batched=True)
    case("a file twice", records(shards[0], shards[0], shards[2], cycle_length=2).batch(4), batched=True)
    case("zip of files", zip_of(records(*shards, **turns), lines(*texts), pieces(*fixed, record_bytes=2)).batch(4), batched=True)
    case("concatenate of sources", concatenate_of(records(shards[0]), lines(texts[3]), pieces(fixed[4], record_bytes=2)).batch(4), batched=True)
    case("enumerate of files", records(*shards).enumerate(100).shard(2, 1).batch(4), batched=True)


def paths_of(pattern):
    """list_files in the order of names."""
    return Chain(f'stage {{ list_files {{ files: "{PLACE}{pattern}" shuffle: false }} }}',
                 tf.data.Dataset.list_files(str(FOLDER / pattern), shuffle=False))


def records_in(path):
    return Chain("stage { tfrecord {} }", tf.data.TFRecordDataset("" if path is None else path))


def lines_in(path):
    return Chain("stage { text_line {} }", tf.data.TextLineDataset("" if path is None else path))


def nested_cases():
    for turns in [(1, 1), (2, 1), (2, 3), (3, 2), (7, 1), (16, 4)]:
        case(f"interleave {turns}", paths_of("turn-?.tfrecord").interleave(records_in, *turns).batch(4), batched=True)
        case(f"interleave {turns} of two each", paths_of("turn-?.tfrecord").interleave(lambda p: records_in(p).take(2), *turns).batch(4),
             batched=True)
        case(f"interleave {turns} of lines, numbered", paths_of("turn-?.txt").interleave(lambda p: lines_in(p).enumerate(5), *turns).batch(4),
             batched=True)
        case(f"interleave {turns}, repeated inside", paths_of("turn-?.txt").interleave(lambda p: lines_in(p).repeat(2).skip(1), *turns)
             .batch(4), batched=True)
        case(f"interleave {turns}, repeated outside", paths_of("turn-?.txt").repeat(2).interleave(lines_in, *turns).skip(5).batch(4),
             batched=True)
        case(f"interleave {turns} of a shard of the files", paths_of("turn-?.tfrecord").shard(2, 1).interleave(records_in, *turns).repeat(2)
             .batch(4), batched=True)
    case("flat_map", paths_of("turn-?.tfrecord").flat_map(records_in).batch(4), batched=True)
    case("flat_map, repeated", paths_of("turn-?.tfrecord").skip(1).flat_map(lambda p: records_in(p).shard(2, 0)).repeat(2).batch(4),
         batched=True)
    case("flat_map of no files", paths_of("turn-?.tfrecord").take(0).flat_map(records_in).batch(4), batched=True)


def element_cases():
    """Datasets that are made of an element's values."""
    once, slices = tf.data.Dataset.from_tensors, tf.data.Dataset.from_tensor_slices
    filter_odd = 'stage { filter { predicate: "value % 2 == 1" } }'
    part = "stage { window_part {} }"
    for turns in [(1, 1), (2, 1), (2, 2), (3, 4), (5, 1), (16, 3)]:
        case(f"interleave {turns} of an element, repeated", numbers(5).interleave_of(
            stage("repeat", count=3), lambda x: once(x).repeat(3), *turns))
        case(f"interleave {turns} of slices", numbers(22).batch(5).interleave_of(
            "stage { unbatch { } }", slices, *turns).batch(4), batched=True)
        case(f"interleave {turns} of as many slices as there are", numbers(24).batch(4).repeat(2).interleave_of(
            "stage { unbatch { } } " + filter_odd + stage("skip", count=1),
            lambda x: slices(x).filter(lambda y: y % 2 == 1).skip(1), *turns).skip(3).batch(4), batched=True)
        case(f"interleave {turns} of empty ones and others", numbers(20).batch(3).interleave_of(
            'stage { unbatch { } } stage { filter { predicate: "value % 7 < 2" } }',
            lambda x: slices(x).filter(lambda y: y % 7 < 2), *turns).batch(2), batched=True)
        case(f"interleave {turns} of pairs", zip_of(numbers(12).batch(3), numbers(10, 14)).interleave_of(
            f'stage {{ zip {{ input {{ {part} stage {{ map {{ out: "value = feature(\'0\')" structure: "null" }} }} stage {{ unbatch {{ }} }} }} '
            f'input {{ {part} stage {{ map {{ out: "value = feature(\'1\')" structure: "null" }} }} stage {{ repeat {{ }} }} }} }} }}',
            lambda x, y: tf.data.Dataset.zip((slices(x), once(y).repeat())), *turns).batch(5), batched=True)
        case(f"interleave {turns} of what is no element", numbers(3).interleave_of(
            stage("range", start=5, stop=9), lambda x: tf.data.Dataset.range(5, 9), *turns).skip(2).batch(3), batched=True)
        case(f"interleave {turns} of batches", numbers(26).batch(6).interleave_of(
            "stage { unbatch { } } " + stage("batch", batch_size=4), lambda x: slices(x).batch(4), *turns), batched=True)
        case(f"interleave {turns} of an interleave", numbers(27).batch(3).batch(3).interleave_of(
            "stage { unbatch { } } stage { interleave { input { stage { unbatch { } } } cycle_length: 2 } }",
            lambda x: slices(x).interleave(slices, cycle_length=2), *turns).enumerate().batch(4), batched=True)
        case(f"interleave {turns} of lines with their file", paths_of("turn-?.txt").interleave_of(
            f"stage {{ text_line {{ }} }} stage {{ zip {{ input {{ {part} {stage('repeat')} }} }} }}".replace("{  }", "{ }"),
            lambda path: tf.data.Dataset.zip((tf.data.TextLineDataset(path), once(path).repeat())), *turns)
            .map(lambda line, path: {"line": line}, line="feature('0')"))
    case("flat_map of slices", numbers(22).batch(5).flat_map_of("stage { unbatch { } }", slices).shard(3, 1))
    case("flat_map of slices, numbered", numbers(22).batch(5).flat_map_of(
        "stage { unbatch { } } stage { enumerate { } }", lambda x: slices(x).enumerate()).batch(4), batched=True)
    case("flat_map of filtered elements", numbers(30).filter("value % 3 == 1", lambda x: x % 3 == 1).flat_map_of(
        stage("repeat", count=2), lambda x: once(x).repeat(2)).take(9))
    case("flat_map of nothing", numbers(0).flat_map_of(stage("repeat", count=2), lambda x: once(x).repeat(2)))
    case("flat_map to nothing", numbers(5).flat_map_of(stage("take", count=0), lambda x: once(x).take(0)).batch(2), batched=True)


def value_cases():
    for limit in [0, 1, 5, 30]:
        case(f"filter below {limit}", numbers(30).filter(f"value < {limit}", lambda x: x < limit))
        case(f"take_while below {limit}", numbers(30).take_while(f"value < {limit}", lambda x: x < limit))
        case(f"take_while below {limit} repeat", numbers(30).take_while(f"value < {limit}", lambda x: x < limit).repeat(2).batch(7),
             batched=True)
    every_third = numbers(-40, 40).filter("value % 3 == 1", lambda x: x % 3 == 1)
    case("filter every third", every_third.batch(4), batched=True)
    case("filter skip take repeat", every_third.skip(3).take(9).repeat(2).batch(4), batched=True)
    case("filter shard enumerate", every_third.shard(3, 1).enumerate(2).batch(4), batched=True)
    case("filter of a filter", every_third.filter("value % 2 == 0", lambda x: x % 2 == 0).batch(4), batched=True)
    case("filter of a dict", numbers(20).dict_of(x=2, y=3).filter("x + y > 30", lambda e: e["x"] + e["y"] > 30).batch(3), batched=True)
    case("filter of a zip", zip_of(every_third, numbers(100, 200)).batch(4), batched=True)
    case("filter in concatenate", concatenate_of(every_third, numbers(5), every_third).batch(4), batched=True)
    case("filter all, repeated", numbers(9).filter("value < 0", lambda x: x < 0).repeat().batch(4), batched=True)
    pair = numbers(7).map(lambda x: {"a": x + tf.constant([0, 100], tf.int64), "b": -x - tf.constant([[1, 2], [3, 4]], tf.int64)},
                          a="value + [0, 100]", b="-value - [[1, 2], [3, 4]]")
    case("unbatch of a map", pair.unbatch())
    case("unbatch of a map, batched", pair.unbatch().skip(1).repeat(2).batch(4), batched=True)
    case("unbatch of batches", numbers(17).batch(5).unbatch().batch(3), batched=True)
    case("unbatch of whole batches", numbers(17).batch(5, True).unbatch().batch(4), batched=True)
    case("batch batch", numbers(17).batch(3, True).batch(2), batched=True)
    case("batch batch batch", numbers(40).batch(3, True).batch(2, True).batch(4), batched=True)
    case("batch batch unbatch", numbers(17).batch(3, True).batch(2).unbatch())
    case("batch batch unbatch unbatch", numbers(17).batch(3, True).batch(2).unbatch().unbatch().batch(4), batched=True)
    case("batch enumerate", numbers(17).batch(4, True).enumerate(3))
    case("batch zip", zip_of(numbers(17).batch(4, True), numbers(30, 50).batch(2, True)).batch(2), batched=True)
    case("batch filter", numbers(17).batch(4, True).filter("value[0] != 4", lambda x: x[0] != 4))
    case("batch concatenate", concatenate_of(numbers(9).batch(3, True), numbers(20, 29).batch(3, True)).skip(1))
    case("batch map of the whole", numbers(17).batch(4, True).map(lambda x: {"a": x - x[::-1]}, a="value - value[::-1]"))


def text_cases():
    texts = [b"a\nb\n", b"a\nb", b"a\r\nb\r\n", b"a\r\nb", b"a\rb\nc\r", b"\r", b"\n", b"\r\n", b"\r\r", b"a\r\r\nb", b"\n\n", b"\n\na\n\n\nb\n\n", b"a\n\r",
             b"\n\r", b"\ra", b"a\r", b"x\r\n\r\ny", b"\xff\x00\xfe\n\x00\n", b"\xef\xbb\xbfa\n", b"x" * 300 + b"\n" + b"y" * 299]
    for number, text in enumerate(texts):
        for compression in ["", "GZIP", "ZLIB"]:
            if compression and number % 3 and b"\r" not in text:
                continue
            name = write(f"lines-{number}.{compression or 'plain'}", COMPRESS[compression](text))
            case(f"text_line {compression} {text[:20]!r}", lines(name, compression=compression))
    empty = write("empty", b"")
    case("text_line, an empty file among others", lines("lines-0.plain", empty, "lines-1.plain").batch(4), batched=True)
    case("text_line, an empty file", lines(empty), expect=[], error="files are empty", differs="has no elements")


def fixed_cases():
    for compression in ["", "GZIP", "ZLIB"]:
        for number, (header, size, footer, data) in enumerate([(0, 3, 0, b"abcdef"), (2, 3, 1, b"HHabcdefF"), (2, 3, 1, b"HHF"), (0, 1, 0, b"abc"),
                                                               (0, 3, 4, b"abcFFFF"), (5, 2, 0, b"HHHHHab"), (1, 64, 1, bytes(range(130)))]):
            name = write(f"fixed-{number}.{compression or 'plain'}", COMPRESS[compression](data))
            case(f"fixed_length_record {compression} {header} {size} {footer}, {len(data)} bytes",
                 pieces(name, record_bytes=size, header_bytes=header, footer_bytes=footer, compression=compression))
        name = write(f"fixed-cut.{compression or 'plain'}", COMPRESS[compression](b"abcd"))
        # tf.data refuses the plain file before its first record and a compressed one behind its last.
        case(f"fixed_length_record {compression}, not whole", pieces(name, record_bytes=3, compression=compression),
             expect=strings(b"abc"), error="does not end in a whole record",
             differs="the same error: before the first record of a plain file, at the end of a compressed one")
    name = write("fixed-short.plain", b"HH")
    case("fixed_length_record, no footer", pieces(name, record_bytes=3, header_bytes=2, footer_bytes=1), expect=[],
         error="does not end in a whole record", differs="ends silently")
    case("fixed_length_record, a file without its header", pieces("empty", "fixed-1.plain", record_bytes=3, header_bytes=2, footer_bytes=1),
         expect=strings(b"abc", b"def"), differs="refuses a file of no bytes")
    case("fixed_length_record, an empty file", pieces("empty", record_bytes=3), expect=[], error="files are empty",
         differs="has no elements")


def record_cases():
    payloads = [b"one", b"", b"three" * 50]
    for compression in ["", "GZIP", "ZLIB"]:
        whole = frame(payloads)
        name = write(f"whole.{compression or 'plain'}", COMPRESS[compression](whole))
        case(f"tfrecord {compression}", records(name, compression=compression))
        case(f"tfrecord {compression}, repeated", records(name, compression=compression).repeat(2).batch(4), batched=True)
        cut = write(f"cut.{compression or 'plain'}", COMPRESS[compression](whole + b"\x03\0\0\0\0"))
        chain = records(cut, compression=compression)
        assert len(list(chain.dataset)) == 3
        case(f"tfrecord {compression}, 5 bytes behind the last record", chain, expect=strings(*payloads), error="cut",
             differs="ends silently")
    unknown = records("whole.plain", compression="LZ9")
    assert len(list(unknown.dataset)) == 3
    case("tfrecord, unknown compression", unknown, expect=[], error="compression", differs="reads the file as plain")
    case("tfrecord, two members of one gzip file", records(
        write("members.GZIP", frame(payloads, "GZIP") + frame([b"four"], "GZIP")), compression="GZIP"))


def random_chains():
    """Chains of up to 6 ops, drawn from a fixed seed."""
    dice = random.Random(7)

    def source():
        kind = dice.randrange(4)
        if kind < 2:
            first = dice.randrange(-20, 20)
            return numbers(first, first + dice.randrange(0, 30), dice.choice([1, 1, 2, 3]))
        if kind == 2:
            return concatenate_of(numbers(dice.randrange(0, 9)), numbers(100, 100 + dice.randrange(0, 9)), numbers(200, 200 + dice.randrange(0, 5)))
        return zip_of(numbers(dice.randrange(1, 12)), numbers(100, 100 + dice.randrange(0, 12)))

    for number in range(60):
        chain = source()
        for _ in range(dice.randrange(1, 6)):
            op = dice.choice(["take", "skip", "shard", "repeat", "enumerate", "forever"])
            if op == "take":
                chain = chain.take(dice.randrange(0, 25))
            elif op == "skip":
                chain = chain.skip(dice.randrange(0, 12))
            elif op == "shard":
                count = dice.randrange(1, 5)
                chain = chain.shard(count, dice.randrange(count))
            elif op == "repeat":
                chain = chain.repeat(dice.randrange(0, 4))
            elif op == "enumerate":
                chain = chain.enumerate(dice.randrange(-3, 4))
            else:
                chain = chain.repeat().take(dice.randrange(1, 20))
        chain = chain.batch(dice.randrange(1, 9), dice.choice([True, None]))
        if dice.random() < 0.4:
            chain = chain.skip(dice.randrange(0, 3)).repeat(dice.randrange(1, 3))
        case(f"chain {number}", chain.take(12), batched=True)


def inline_cases():
    case("from_tensor_slices, a lone tensor", slices(np.arange(5)))
    case("from_tensor_slices, rows", slices(np.arange(12).reshape(4, 3)).batch(3), batched=True)
    case("from_tensor_slices, one value", slices(np.array([7]), shape=False))
    case("from_tensor_slices, no rows", slices(np.zeros((0, 3)), dtype="float64").batch(2), batched=True)
    case("from_tensor_slices, rows of nothing", slices(np.zeros((3, 0)), dtype="float64").batch(2), batched=True)
    # Beside whole numbers: ties of float16 and bfloat16, the ends of their ranges, denormal numbers.
    floats = np.array([0, -0.0, 1, -2.5, 1 / 3, 2049, 2051, 65504, 65519.9, 65520, -1e9, 2.0**-14, 2.0**-24, 2.0**-25, 3 * 2.0**-26, 6.1e-5,
                       5.96e-8, 1e-40, 257, 259, 3.3895e38, 1.00390625, 1.01171875, 1.0009765625 + 2.0**-40, np.inf, -np.inf])
    with np.errstate(all="ignore"):
        for name in ["float16", "float32", "float64"]:
            case(f"from_tensor_slices, {name}", tensors("from_tensor_slices", tensor_text("", floats, dtype=name),
                                                       floats.astype(name)).batch(7), batched=True)
        case("from_tensor_slices, bfloat16", tensors("from_tensor_slices", tensor_text("", floats, dtype="bfloat16"),
                                                     floats.astype(tf.bfloat16.as_numpy_dtype)).batch(7), batched=True)
    for name in ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]:
        ends = [0, 1] if name == "bool" else [np.iinfo(name).min, 0, 1, np.iinfo(name).max]
        case(f"from_tensor_slices, {name}", slices(np.array(ends, name), dtype=name).batch(3), batched=True)
    texts = np.array([b"a", b"", b"\xff\x00\xfe", b"long " * 20], object)
    case("from_tensor_slices, strings", slices(texts).batch(3), batched=True)
    case("from_tensor_slices, strings, skip", slices(texts).skip(1).repeat(2))
    dict_of = {"x": np.arange(6).reshape(3, 2), "t": np.array([b"p", b"q", b"rr"], object), "f": np.array([1.5, -2, 3], np.float32)}
    inside = " ".join([tensor_text("x", dict_of["x"]), tensor_text("t", dict_of["t"]), tensor_text("f", dict_of["f"], dtype="float32")])
    named = tensors("from_tensor_slices", inside, dict_of)
    case("from_tensor_slices, a dict", named)
    case("from_tensor_slices, a dict, batch", named.batch(2), batched=True)
    case("from_tensor_slices, a dict, repeat shard", named.repeat(3).shard(2, 1).batch(4), batched=True)
    case("from_tensor_slices, a dict, zip", zip_of(named, numbers(2)).enumerate(4).batch(2), batched=True)
    case("from_tensor_slices, a dict of one", tensors("from_tensor_slices", tensor_text("value", np.arange(2)), {"value": np.arange(2)}))
    ten = slices(np.arange(10))
    case("from_tensor_slices, take skip batch", ten.skip(2).take(7).batch(3), batched=True)
    case("from_tensor_slices, repeat batch", ten.repeat(2).batch(6, True), batched=True)
    case("from_tensor_slices, concatenate", ten.concatenate(numbers(20, 23), slices(np.arange(30, 33))).repeat(2).batch(9), batched=True)
    case("from_tensor_slices, shuffle(1)", ten.shuffle_of_one().prefetch(2).batch(4), batched=True)
    case("from_tensors, a scalar", tensors("from_tensors", tensor_text("", np.int64(5)), np.int64(5)))
    case("from_tensors, one value with an axis", tensors("from_tensors", tensor_text("", np.array([5])), np.array([5])))
    case("from_tensors, a matrix", tensors("from_tensors", tensor_text("", np.arange(6).reshape(2, 3)), np.arange(6).reshape(2, 3)))
    case("from_tensors, a string", tensors("from_tensors", tensor_text("", np.array(b"text", object)), b"text").repeat(3).batch(2), batched=True)
    whole = tensors("from_tensors", tensor_text("x", np.arange(4)) + " " + tensor_text("y", np.float64(0.5)),
                    {"x": np.arange(4), "y": np.float64(0.5)})
    case("from_tensors, a dict", whole)
    case("from_tensors, a dict, repeat batch", whole.repeat(5).batch(2), batched=True)
    case("from_tensors, zip", zip_of(whole.repeat(), numbers(3)).batch(2), batched=True)


def array_cases():
    arrays = {
        "f4": np.linspace(-2, 2, 30, dtype=np.float32).reshape(10, 3), "i8": np.arange(-5, 5), "u1": np.arange(40, dtype=np.uint8).reshape(10, 2, 2),
        "b1": np.arange(10) % 3 == 0, "f2": np.linspace(0, 1, 10, dtype=np.float16), "u8": np.arange(10, dtype=np.uint64) + (1 << 63),
        "S": np.array([b"cat", b"", b"a longer one", b"d"] * 2 + [b"x", b"yy"]), "i2": np.arange(10, dtype=np.int16), "f8": np.arange(10) / 7,
    }
    for name, array in arrays.items():
        path = write(f"array-{name}.npy", saved(np.save, array))
        case(f"from_tensor_slices, npy, {name}", tensors("from_tensor_slices", file_tensor("", path), array).batch(4), batched=True)
        case(f"from_tensor_slices, npy, {name}, shard", tensors("from_tensor_slices", file_tensor("a", path), {"a": array}).shard(3, 1))
    unicode = np.array(["Ärger", "", "日本", "🎈x"])
    path = write("array-U.npy", saved(np.save, unicode))
    case("from_tensor_slices, npy, U", tensors("from_tensor_slices", file_tensor("", path), [text.encode() for text in unicode]).batch(3), batched=True)
    brain = np.arange(10).astype(tf.bfloat16.as_numpy_dtype)
    path = write("array-V2.npy", saved(np.save, brain.view("V2")))
    case("from_tensor_slices, npy, bfloat16", tensors("from_tensor_slices", file_tensor("", path, dtype="bfloat16"), brain).batch(4), batched=True)
    path = write("array-2.0.npy", saved(lambda to, array: np.lib.format.write_array(to, array, version=(2, 0)), arrays["i8"]))
    case("from_tensor_slices, npy, version 2.0", tensors("from_tensor_slices", file_tensor("", path), arrays["i8"]).batch(4), batched=True)
    case("from_tensors, npy", tensors("from_tensors", file_tensor("", "array-f4.npy"), arrays["f4"]).repeat(2))
    dict_of = {name: arrays[name] for name in ("f4", "S", "i8")}
    inside = " ".join(file_tensor(name, f"array-{name}.npy") for name in dict_of)
    case("from_tensor_slices, npy, a dict", tensors("from_tensor_slices", inside, dict_of).skip(3).repeat(2).batch(4), batched=True)
    for save in (np.savez, np.savez_compressed):
        path = write(f"{save.__name__}.npz", saved(save, **arrays))
        place = f'npz: "{PLACE}{path}"'
        case(f"from_tensor_slices, {save.__name__}", tensors("from_tensor_slices", place, arrays).batch(4), batched=True)
        case(f"from_tensor_slices, {save.__name__}, named", tensors(
            "from_tensor_slices", file_tensor("x", path, "f4") + " " + file_tensor("i8", path, "i8"), {"x": arrays["f4"], "i8": arrays["i8"]}).skip(7))
        few = write(f"{save.__name__}-few.npz", saved(save, x=arrays["f4"], n=np.int64(3)))
        case(f"from_tensors, {save.__name__}", tensors("from_tensors", f'npz: "{PLACE}{few}"', {"x": arrays["f4"], "n": np.int64(3)}))


def list_of(*patterns):
    text = " ".join(f'files: "{PLACE}{pattern}"' for pattern in patterns)
    found = tf.data.Dataset.list_files([str(FOLDER / pattern) for pattern in patterns], shuffle=False)
    return Chain(f"stage {{ list_files {{ {text} shuffle: false }} }}", found)


def folder_cases():
    texts = {"b/2.txt": b"two", "b/10.txt": b"ten", "a/z.txt": b"", "a/\u00e9.txt": "\u00e9".encode(), "a/B.txt": b"B", "Z/q.txt": b"\x00\xff",
             "b/note.md": b"#"}
    for name, data in texts.items():
        write(f"classes/{name}", data)
    for patterns in [["classes/*/*.txt"], ["classes/b/*"], ["classes/a/*", "classes/b/*.txt"], ["classes/b/*", "classes/a/z.txt"],
                     ["classes/[bZ]/?.txt"], ["classes/b/2.txt", "classes/b/*.txt"]]:
        case(f"list_files {patterns}", list_of(*patterns))
    all_texts = list_of("classes/*/*.txt")
    case("list_files, repeat batch", all_texts.repeat(2).batch(4), batched=True)
    case("list_files, skip take shard", all_texts.skip(1).take(4).shard(2, 1))
    case("list_files, zip enumerate", zip_of(all_texts, numbers(4)).enumerate().batch(3), batched=True)

    # What Keras makes of the same folder: the classes, the files in their order with their labels, and their content.
    keras = tf.keras.utils.text_dataset_from_directory(FOLDER / "classes", shuffle=False, batch_size=None)
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keras.class_names, tf.range(len(keras.class_names), dtype=tf.int64)), -1)

    def read(path):
        return {"path": path, "bytes": tf.io.read_file(path)}

    def read_with_class(path):
        name = tf.strings.split(path, "/")[-2]
        return {**read(path), "label": table.lookup(name), "class_name": name}

    pattern = f'files: "{PLACE}classes/*/*.txt"'
    classes = Chain(f"stage {{ files {{ {pattern} class_from_folder: true }} }}", all_texts.dataset.map(read_with_class))
    ours = [(row["bytes"], row["label"]) for row in classes.dataset.as_numpy_iterator()]
    assert ours == [(text, label) for text, label in keras.as_numpy_iterator()], "Keras has another order, or other labels"
    plain = Chain(f"stage {{ files {{ {pattern} }} }}", all_texts.dataset.map(read))
    case("files", plain)
    case("files, repeat batch", plain.repeat(2).batch(5), batched=True)
    case("files, classes", classes)
    case("files, classes, batch", classes.skip(1).batch(3, True).repeat(2), batched=True)
    case("files, zip", zip_of(numbers(4), classes).batch(3), batched=True)


def main():
    counting_cases()
    tuple_cases()
    random_chains()
    interleave_cases()
    nested_cases()
    element_cases()
    value_cases()
    text_cases()
    fixed_cases()
    record_cases()
    inline_cases()
    array_cases()
    folder_cases()
    document = {"tensorflow": tf.__version__, "files": files}
    lines_of_cases = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in cases)
    head = json.dumps(document, separators=(",", ":"))[:-1]
    path = pathlib.Path(__file__).with_name("order.json")
    path.write_text(f'{head},\n"cases":[\n{lines_of_cases}\n]}}\n')
    print(len(cases), "cases,", path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
