"""Pipelines that read the same in tf.data and in Penstock: each case is one function of a namespace, which holds either's names.

make_dataset_goldens.py runs them with TensorFlow, tests/client/python_dataset_test.py with Penstock. In `t`: Dataset and the readers,
io, image, np (NumPy, or TensorFlow's own of the same interface), the dtypes, and `folder`, where write_files() has put the files.
"""

import pathlib
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))
import tfrecord_files  # noqa: E402


# In an order that is none of their names.
PHOTOS = {"photo-m.jpg": "rgb_tiny.jpg", "photo-z.jpg": "grey.jpg", "photo-a.jpg": "rgb_420_odd.jpg", "photo-b.jpg": "rgb_progressive.jpg"}


def write_files(folder):
    for shard in range(3):
        examples = [
            tfrecord_files.example(
                label=10 * shard + i,
                weights=[i + 0.5, shard - 0.25, 1.0],
                image__encoded=bytes([65 + i]) * (i + 1),
                # The list of none is a missing feature.
                **({"many": list(range(i))} if i else {}),
            )
            for i in range(5 - shard)
        ]
        tfrecord_files.write(folder / f"part-{shard}.tfrecord", examples)
    (folder / "lines.txt").write_bytes(b"first\nsecond\r\n\nlast")
    (folder / "fixed.bin").write_bytes(b"HEADaabbccddFT")
    (folder / "table.csv").write_bytes(b'number,text,value\n1,a,0.5\n2,"b, c",\n,,-1e3\n')
    framed = bytearray((folder / "part-0.tfrecord").read_bytes())
    framed[len(framed) // 2] ^= 1
    (folder / "damaged.tfrecord").write_bytes(framed)
    (folder / "cut.tfrecord").write_bytes(framed[:20])
    for name, image in PHOTOS.items():
        (folder / name).write_bytes((pathlib.Path(__file__).parent / "images" / image).read_bytes())


array = numpy.array


def features(t):
    return {
        "label": t.io.FixedLenFeature([], t.int64),
        "weights": t.io.FixedLenFeature([3], t.float32),
        "image/encoded": t.io.FixedLenFeature([], t.string),
        "absent": t.io.FixedLenFeature([2], t.int64, [7, 8]),
    }


def records(t, **arguments):
    return t.TFRecordDataset([f"{t.folder}/part-{i}.tfrecord" for i in range(3)], **arguments)


def listed(t):
    return t.Dataset.list_files(f"{t.folder}/part-*.tfrecord", shuffle=False)


def shrunk(t, path, label, size=20):
    """An image whose shorter side is `size`, the other as it follows: how ImageNet's evaluation begins."""
    image, label = decoded(t, path, label)
    sides = t.sizes_of(image)
    height, width = sides[0].astype("float32"), sides[1].astype("float32")
    scale = numpy.float32(size) / t.np.minimum(height, width)
    sides = [(height * scale).astype("int32"), (width * scale).astype("int32")]
    return t.image.resize(image, sides), sides, label


def evaluated(t, path, label):
    image, (height, width), label = shrunk(t, path, label)
    return t.image.crop_to_bounding_box(image, (height - 12) // 2, (width - 13) // 2, 12, 13), label


def cut_by_slices(t, path, label):
    image, (height, width), label = shrunk(t, path, label)
    top, left = (height - 12) // 2, (width - 13) // 2
    return image[top : top + 12, left : left + 13], image[height // 4, left], image[-top:, width - 3 :: 2, 0], label


def decoded_in_part(t, path, label):
    """The largest square in the middle: how EfficientNet's evaluation begins."""
    contents = t.io.read_file(path)
    sides = t.io.extract_jpeg_shape(contents)
    side = (numpy.float32(0.875) * t.np.minimum(sides[0], sides[1]).astype("float32")).astype("int32")
    side = t.np.maximum(side, 1)
    window = [(sides[0] - side + 1) // 2, (sides[1] - side + 1) // 2, side, side]
    # With fancy upscaling TensorFlow's chroma at the edges of a window is another than in the whole image.
    image = t.io.decode_and_crop_jpeg(contents, window, channels=3, fancy_upscaling=False, dct_method="INTEGER_ACCURATE")
    return t.image.resize(image, [7, 7], method="bicubic"), label


def framed(t, path, label):
    """In a square of the longer side."""
    image, (height, width), label = shrunk(t, path, label, 5)
    side = t.np.maximum(height, width)
    padded = t.image.pad_to_bounding_box(image, (side - height) // 2, (side - width) // 2, side, side)
    return t.image.resize_with_crop_or_pad(image, side, height), t.image.resize(padded, [4, 4], method="nearest"), label


def photos(t):
    """Pairs of a path and its number."""
    return t.Dataset.from_tensor_slices(([f"{t.folder}/{name}" for name in PHOTOS], array(range(len(PHOTOS)), "int64")))


def decoded(t, path, label):
    return t.io.decode_jpeg(t.io.read_file(path), channels=3, dct_method="INTEGER_ACCURATE"), label


def saved(t, name, dataset, compression=None, shard_func=None, **arguments):
    """What is loaded again of a dataset that has been saved."""
    folder = f"{t.folder}/saved-{name}"
    dataset.save(folder, compression=compression, shard_func=shard_func)
    return t.Dataset.load(folder, compression=compression, **arguments)


def lists(t):
    kinds = {"label": t.io.FixedLenFeature([], t.int64), "many": t.io.FixedLenSequenceFeature([], t.int64, allow_missing=True)}
    return records(t).map(lambda r: t.io.parse_single_example(r, kinds))


def number(t, *args):
    return t.Dataset.range(*args)


CASES = {
    "range": lambda t: number(t, 5),
    "range_start_step": lambda t: number(t, 10, -3, -4),
    "range_empty": lambda t: number(t, 0),
    "range_output_type": lambda t: t.Dataset.range(4, output_type=t.int32),
    "take_skip": lambda t: number(t, 20).skip(3).take(4),
    "take_all": lambda t: number(t, 3).take(-1),
    "skip_all": lambda t: number(t, 3).skip(-1),
    "shard": lambda t: number(t, 11).shard(3, 2),
    "shard_keywords": lambda t: number(t, 11).shard(num_shards=4, index=1),
    "repeat": lambda t: number(t, 3).repeat(2),
    "repeat_nothing": lambda t: number(t, 3).repeat(0),
    "repeat_forever": lambda t: number(t, 3).repeat().take(7),
    "batch": lambda t: number(t, 7).batch(3),
    "batch_drop": lambda t: number(t, 7).batch(3, drop_remainder=True),
    "batch_tuning": lambda t: number(t, 7).batch(3, num_parallel_calls=t.AUTOTUNE, deterministic=True),
    "enumerate": lambda t: number(t, 3).enumerate(start=5),
    "enumerate_batch": lambda t: number(t, 5).enumerate().batch(2),
    "zip": lambda t: t.Dataset.zip((number(t, 3), number(t, 10, 20))),
    "zip_arguments": lambda t: t.Dataset.zip(number(t, 3), number(t, 10, 20)),
    "zip_dict": lambda t: t.Dataset.zip({"a": number(t, 3), "b": (number(t, 4), number(t, 5, 9))}),
    "zip_lone": lambda t: t.Dataset.zip((number(t, 3),)),
    "concatenate": lambda t: number(t, 2).concatenate(number(t, 5, 7)),
    "prefetch": lambda t: number(t, 4).prefetch(2).batch(2).prefetch(t.AUTOTUNE),
    "apply": lambda t: number(t, 9).apply(lambda d: d.batch(2).skip(1)),
    "map_lone": lambda t: number(t, 5).map(lambda x: x * 2 + 1),
    "map_dict": lambda t: number(t, 5).map(lambda x: {"x": x, "y": x - 3}, num_parallel_calls=t.AUTOTUNE),
    "map_tuple": lambda t: number(t, 5).map(lambda x: (x, x * x)),
    "map_nested": lambda t: number(t, 3).map(lambda x: (x, {"a": x + 1, "b": (x + 2, x + 3)})),
    "map_of_tuple": lambda t: number(t, 4).map(lambda x: (x, x + 10)).map(lambda a, b: b - a),
    "map_of_dict": lambda t: number(t, 4).map(lambda x: {"p": x, "q": x + 1}).map(lambda e: {"r": e["p"] * e["q"]}),
    "map_of_nested": lambda t: number(t, 3).enumerate().map(lambda i, x: {"sum": i + x}).batch(2),
    "map_after_batch": lambda t: number(t, 6).batch(4).map(lambda x: (x, -x)),
    "map_identity": lambda t: number(t, 3).map(lambda x: x),
    "map_swap": lambda t: number(t, 3).map(lambda x: (x, x + 1)).map(lambda a, b: (b, a)),
    "where": lambda t: number(t, 6).map(lambda x: t.np.where(x > 2, x, -x)),
    "floats": lambda t: number(t, 6).map(lambda x: t.np.tanh(t.np.float32(0.5) * x.astype(t.np.float32))),
    "maximum": lambda t: number(t, 6).map(lambda x: t.np.maximum(x, 3) - t.np.minimum(x, 2)),
    "comparison": lambda t: number(t, 6).map(lambda x: (x == 2, x != 2, x < 3, x <= 3, x > 3, x >= 3)),
    "integers": lambda t: number(t, 1, 6).map(lambda x: (x // 2, x % 3, -x, abs(2 - x), 7 // x, 7 % x, 1 - x)),
    "records": lambda t: records(t),
    "records_in_turns": lambda t: records(t, num_parallel_reads=2),
    "lines": lambda t: t.TextLineDataset(f"{t.folder}/lines.txt"),
    "fixed": lambda t: t.FixedLengthRecordDataset(f"{t.folder}/fixed.bin", 2, header_bytes=4, footer_bytes=2),
    "parse": lambda t: records(t).map(lambda r: t.io.parse_single_example(r, features(t))),
    "parse_batch": lambda t: records(t).map(lambda r: t.io.parse_single_example(r, features(t))).batch(5),
    "parse_and_use": lambda t: records(t).map(lambda r: use(t, t.io.parse_single_example(r, features(t)))),
    "parse_of_a_pair": lambda t: records(t).enumerate().map(lambda i, r: t.io.parse_single_example(r, features(t))),
    "subscripts": lambda t: records(t).map(lambda r: slices(t.io.parse_single_example(r, features(t))["weights"])),
    "interleave": lambda t: listed(t).interleave(t.TFRecordDataset, cycle_length=2, block_length=2),
    "interleave_chains": lambda t: listed(t).interleave(lambda path: t.TFRecordDataset(path).take(2), cycle_length=3),
    "interleave_parsed": lambda t: listed(t).interleave(
        lambda path: t.TFRecordDataset(path).map(lambda r: t.io.parse_single_example(r, features(t))["label"]), cycle_length=2
    ),
    "flat_map": lambda t: listed(t).skip(1).flat_map(lambda path: t.TFRecordDataset(path).skip(1)),
    "records_of_a_list": lambda t: t.TFRecordDataset(listed(t)),
    "records_of_a_list_in_turns": lambda t: t.TFRecordDataset(listed(t), num_parallel_reads=2),
    "lines_of_a_list": lambda t: t.TextLineDataset(t.Dataset.list_files(f"{t.folder}/lines.txt", shuffle=False)),
    "padded_batch": lambda t: lists(t).padded_batch(5),
    "padded_batch_drop": lambda t: lists(t).padded_batch(5, drop_remainder=True),
    "padded_batch_shapes": lambda t: lists(t).padded_batch(
        4, padded_shapes={"label": [], "many": [6]}, padding_values={"label": array(0, "int64"), "many": array(-1, "int64")}
    ),
    "padded_batch_of_one": lambda t: lists(t).map(lambda e: e["many"]).padded_batch(3, [None], array(7, "int64")),
    "filter": lambda t: number(t, 20).filter(lambda x: x % 3 == 1),
    "filter_of_tuple": lambda t: number(t, 9).enumerate(2).filter(lambda i, x: (i > 3) & (x != 5)),
    "filter_of_dict": lambda t: number(t, 9).map(lambda x: {"a": x, "b": x * x}).filter(lambda e: e["b"] > 10).batch(2),
    "filter_then_map": lambda t: number(t, 9).filter(lambda x: x > 4).map(lambda x: (x, -x)),
    "take_while": lambda t: number(t, 20).map(lambda x: x * x).take_while(lambda x: x < 50),
    "unbatch": lambda t: number(t, 7).batch(3).unbatch(),
    "unbatch_of_tuple": lambda t: number(t, 7).enumerate().batch(3).unbatch(),
    "unbatch_and_batch": lambda t: number(t, 7).batch(3).unbatch().batch(2, drop_remainder=True),
    "flat_map_of_slices": lambda t: number(t, 7).batch(3).flat_map(t.Dataset.from_tensor_slices),
    "flat_map_of_slices_of_dict": lambda t: number(t, 6).batch(2).flat_map(
        lambda x: t.Dataset.from_tensor_slices({"a": x, "b": x * x})
    ),
    "flat_map_of_slices_of_tuple": lambda t: number(t, 4).enumerate().batch(2).flat_map(
        lambda i, x: t.Dataset.from_tensor_slices((x, i + x))
    ).batch(3),
    "flat_map_of_slices_mapped": lambda t: number(t, 7).batch(3).flat_map(
        lambda x: t.Dataset.from_tensor_slices(x).map(lambda y: y * 2).filter(lambda y: y != 6)
    ),
    "flat_map_of_slices_taken": lambda t: number(t, 12).batch(4).flat_map(lambda x: t.Dataset.from_tensor_slices(x).skip(1).take(2)),
    "flat_map_of_tensors_repeated": lambda t: number(t, 4).flat_map(lambda x: t.Dataset.from_tensors((x, -x)).repeat(2)),
    "flat_map_of_range": lambda t: number(t, 5).flat_map(lambda x: t.Dataset.range(x)),
    "flat_map_of_range_from": lambda t: number(t, 5).flat_map(lambda x: t.Dataset.range(-x, x + 3, 2)),
    "flat_map_of_range_down": lambda t: number(t, 5).flat_map(lambda x: t.Dataset.range(x * x, 2, -3)),
    "flat_map_of_the_same": lambda t: number(t, 3).flat_map(lambda x: t.Dataset.range(2)),
    "flat_map_of_pairs": lambda t: number(t, 6).batch(3).enumerate().flat_map(
        lambda i, x: t.Dataset.zip((t.Dataset.from_tensor_slices(x), t.Dataset.from_tensors(i).repeat()))
    ),
    "flat_map_that_uses_the_element": lambda t: number(t, 6).batch(3).enumerate().flat_map(
        lambda i, x: t.Dataset.from_tensor_slices(x).map(lambda y: (y, i + 10)).filter(lambda y, j: y != 4)
    ),
    "flat_map_that_filters_by_the_element": lambda t: number(t, 5).flat_map(
        lambda x: number(t, 4).filter(lambda y: y >= x).map(lambda y: {"x": x * 2, "y": y})
    ),
    "flat_map_of_flat_map": lambda t: number(t, 3).flat_map(
        lambda x: number(t, 2).flat_map(lambda y: t.Dataset.from_tensors((x, y)).repeat(2))
    ),
    "flat_map_of_lines_with_path": lambda t: t.Dataset.list_files(f"{t.folder}/lin*.txt").flat_map(
        lambda path: t.TextLineDataset(path).map(lambda line: (line, t.io.decode_raw(path, "uint8", fixed_length=1)))
    ),
    "interleave_of_tensors": lambda t: number(t, 4).interleave(
        lambda x: t.Dataset.from_tensors(x).repeat(3), cycle_length=2, block_length=2
    ),
    "interleave_of_one": lambda t: number(t, 4).interleave(lambda x: t.Dataset.from_tensors(x + 1), cycle_length=2, block_length=2),
    "interleave_of_slices": lambda t: number(t, 11).batch(4).interleave(t.Dataset.from_tensor_slices, cycle_length=2),
    "interleave_of_slices_of_tuple": lambda t: number(t, 9).enumerate().batch(4).interleave(
        lambda i, x: t.Dataset.from_tensor_slices({"i": i, "x": x * 2}), cycle_length=3, block_length=3
    ),
    "interleave_of_slices_of_lists": lambda t: lists(t).interleave(
        lambda e: t.Dataset.from_tensor_slices(e["many"]).map(lambda m: (m, e["label"])), cycle_length=3, block_length=2
    ),
    "interleave_of_batches": lambda t: number(t, 23).batch(6).interleave(
        lambda x: t.Dataset.from_tensor_slices(x).batch(4), cycle_length=3
    ),
    "interleave_of_range": lambda t: number(t, 5).interleave(lambda x: t.Dataset.range(x), cycle_length=3, block_length=2),
    "interleave_of_given_paths": lambda t: t.Dataset.from_tensor_slices([f"{t.folder}/part-{i}.tfrecord" for i in (0, 1, 2, 2)]).interleave(
        t.TFRecordDataset, cycle_length=2, block_length=2
    ),
    "interleave_of_shards_of_files": lambda t: listed(t).shard(2, 0).interleave(
        lambda path: t.TFRecordDataset(path).map(lambda r: t.io.parse_single_example(r, features(t))["label"]).shuffle(1), cycle_length=2
    ),
    "reader_of_given_paths": lambda t: t.TFRecordDataset(
        t.Dataset.from_tensor_slices([f"{t.folder}/part-{i}.tfrecord" for i in (0, 2)])
    ),
    "flat_map_of_tensors": lambda t: number(t, 3).flat_map(lambda x: t.Dataset.from_tensors((x, -x))),
    "list_files": lambda t: t.Dataset.list_files(f"{t.folder}/part-*.tfrecord", shuffle=False),
    "from_tensors": lambda t: t.Dataset.from_tensors(array([[1, 2], [3, 4]], "int16")),
    "from_tensors_of_dict": lambda t: t.Dataset.from_tensors({"a": array(5, "int64"), "b": array([0.5, 1], "float32")}),
    "from_tensors_of_tuple": lambda t: t.Dataset.from_tensors((array(5, "int64"), {"b": array([0.5, 1], "float64")})),
    "from_tensors_of_strings": lambda t: t.Dataset.from_tensors(["first", "", "third"]),
    "slices": lambda t: t.Dataset.from_tensor_slices(array(range(12), "uint8").reshape(4, 3)),
    "slices_of_dict": lambda t: t.Dataset.from_tensor_slices({"a": array([1, 2, 3], "int32"), "s": [b"x", b"", b"zz"]}),
    "slices_of_tuple": lambda t: t.Dataset.from_tensor_slices((array([1, 2, 3], "int64"), array([True, False, True], "bool"))),
    "slices_of_floats": lambda t: t.Dataset.from_tensor_slices(array([0.1, float("inf"), -1e30], "float32")).batch(2),
    "slices_of_many": lambda t: t.Dataset.from_tensor_slices(array(range(30000), "int64").reshape(-1, 3)).skip(9990).batch(4),
    "slices_and_map": lambda t: t.Dataset.from_tensor_slices((array([1, 2], "int64"), array([3, 4], "int64"))).map(lambda a, b: a * b),
    "concatenate_other_order": lambda t: number(t, 2).map(lambda x: {"p": x, "q": x * 0.5}).concatenate(
        number(t, 5, 7).map(lambda x: {"q": x * 0.5, "p": x})
    ).batch(3),
    "concatenate_nested_other_order": lambda t: number(t, 2).map(lambda x: ({"b": x, "a": {"z": x + 1, "y": x}}, x)).concatenate(
        number(t, 5, 7).map(lambda x: ({"a": {"y": x, "z": x + 1}, "b": x}, x))
    ),
    "concatenate_batches": lambda t: number(t, 4).batch(2, drop_remainder=True).concatenate(number(t, 7).batch(3, drop_remainder=True)),
    "concatenate_batches_of_strings": lambda t: t.Dataset.from_tensor_slices([b"a", b"", b"ccc", b"dd"]).batch(2, True).concatenate(
        t.Dataset.from_tensor_slices([b"e", b"ff", b"ggg"]).batch(3)
    ).map(lambda x: {"x": x}),
    "concatenate_batches_unbatched": lambda t: number(t, 4).batch(2, True).concatenate(number(t, 6).batch(3, True)).unbatch().batch(4),
    "concatenate_slices_padded": lambda t: t.Dataset.from_tensors(array([1, 2])).concatenate(
        t.Dataset.from_tensors(array([3, 4, 5]))
    ).padded_batch(2),
    "skip_all_of_no_end": lambda t: number(t, 3).repeat().skip(-1),
    "filter_of_filter_of_no_end": lambda t: t.Dataset.counter().filter(lambda x: x < 3).filter(lambda x: x != 1).take(2),
    "unbatch_of_no_end": lambda t: t.Dataset.counter().batch(2).unbatch().take(5),
    "pairs_of_records": lambda t: t.Dataset.zip((records(t), records(t).skip(1))).batch(4, drop_remainder=True),
}


def use(t, x):
    w = x["weights"]
    return {"first": w[0] * 2, "shifted": w - w[0], "label": x["label"] % 10, "name": x["image/encoded"]}


def slices(w):
    return w[0], w[1:], w[::-1], w[..., 2], w[:2] + w[1:]


def length(t, values):
    """Of a list whose size only the data tells."""
    return t.length_of(values)


def three(t):
    return [number(t, 10, 13), number(t, 20, 22), number(t, 30, 36)]


# Files that elements name.
CASES.update({
    "read_file": lambda t: photos(t).map(lambda path, label: t.io.read_file(path)),
    "read_file_again": lambda t: t.Dataset.from_tensor_slices([f"{t.folder}/{name}" for name in ("lines.txt", "fixed.bin", "lines.txt")]).map(
        lambda path: (t.io.read_file(path), t.io.read_file(filename=path))
    ),
    "read_file_of_listed": lambda t: t.Dataset.list_files(f"{t.folder}/photo-*.jpg", shuffle=False).map(t.io.read_file),
    "read_file_decoded": lambda t: photos(t).map(lambda path, label: decoded(t, path, label)),
    "read_file_shuffled": lambda t: photos(t).shuffle(1).map(
        lambda path, label: decoded(t, path, label), num_parallel_calls=t.AUTOTUNE
    ).map(lambda image, label: (t.image.resize(image, [6, 5]), label)).batch(3).prefetch(t.AUTOTUNE),
    "evaluated": lambda t: photos(t).map(lambda path, label: evaluated(t, path, label)),
    "evaluated_in_batches": lambda t: photos(t).map(lambda path, label: evaluated(t, path, label)).batch(3),
    "cut_by_slices": lambda t: photos(t).map(lambda path, label: cut_by_slices(t, path, label)),
    "decoded_in_part": lambda t: photos(t).map(lambda path, label: decoded_in_part(t, path, label)),
    "framed": lambda t: photos(t).map(lambda path, label: framed(t, path, label)),
    "read_file_interleaved": lambda t: photos(t).interleave(
        lambda path, label: t.Dataset.from_tensors((t.io.read_file(path), label)).repeat(2), cycle_length=2
    ),
    "read_file_filtered": lambda t: t.Dataset.from_tensor_slices([f"{t.folder}/{name}" for name in ("lines.txt", "fixed.bin")]).filter(
        lambda path: t.io.decode_raw(t.io.read_file(path), "uint8", fixed_length=4)[0] == ord("H")
    ),
})

# What is saved and loaded, in shards.
CASES.update({
    "save_gzip": lambda t: saved(t, "gzip", records(t), "GZIP", reader_func=lambda d: d.flat_map(lambda x: x)),
    "save_shards": lambda t: saved(
        t, "shards", number(t, 11), shard_func=lambda x: x % 3, reader_func=lambda d: d.flat_map(lambda x: x)
    ),
    "save_shards_of_pairs": lambda t: saved(
        t, "pairs", number(t, 9).enumerate(5), shard_func=lambda i, x: (x // 2) % 2, reader_func=lambda d: d.flat_map(lambda x: x)
    ),
    "save_shards_in_turns": lambda t: saved(
        t, "turns", number(t, 11), shard_func=lambda x: x % 4, reader_func=lambda d: d.interleave(lambda x: x, cycle_length=4)
    ),
    "save_shards_in_few_turns": lambda t: saved(
        t, "few", number(t, 14), shard_func=lambda x: t.np.minimum(x % 5, 3),
        reader_func=lambda d: d.interleave(lambda x: x, cycle_length=2, block_length=2),
    ),
    "save_shards_in_blocks": lambda t: saved(
        t, "blocks", number(t, 13), shard_func=lambda x: x % 3,
        reader_func=lambda d: d.interleave(lambda x: x.take(3), cycle_length=3, block_length=3),
    ),
    "save_shards_gzip": lambda t: saved(
        t, "shards-gzip", number(t, 20).map(lambda x: {"x": x, "y": x * 0.5}), "GZIP", lambda e: e["x"] % 2,
        reader_func=lambda d: d.interleave(lambda x: x.skip(3), cycle_length=2),
    ),
    "save_parts_of_groups": lambda t: saved(
        t, "groups", number(t, 20).group_by_window(lambda x: x % 3, lambda key, w: w.skip(1).repeat(2), 3),
        reader_func=lambda d: d.flat_map(lambda x: x),
    ),
    "save_shards_of_one": lambda t: saved(
        t, "one", number(t, 4), shard_func=lambda x: numpy.int64(0), reader_func=lambda d: d.flat_map(lambda x: x)
    ),
})

# Ops that choose among datasets, gather elements, or carry a state.
CASES.update({
    "counter": lambda t: t.Dataset.counter().take(4),
    "counter_arguments": lambda t: t.Dataset.counter(5, -2, dtype=t.int32).take(4).batch(3),
    "choose": lambda t: t.Dataset.choose_from_datasets(three(t), number(t, 3).repeat()),
    "choose_on": lambda t: t.Dataset.choose_from_datasets(three(t), number(t, 3).repeat(9), stop_on_empty_dataset=False).batch(4),
    "choose_other_order": lambda t: t.Dataset.choose_from_datasets(
        [number(t, 3).map(lambda x: {"p": x, "q": -x}), number(t, 3).map(lambda x: {"q": x * x, "p": x})], number(t, 2).repeat()
    ),
    "choose_batches": lambda t: t.Dataset.choose_from_datasets(
        [number(t, 5).batch(2), number(t, 9).batch(3, drop_remainder=True)], number(t, 2).repeat()
    ),
    "choose_of_no_end": lambda t: t.Dataset.choose_from_datasets(
        [t.Dataset.counter(), t.Dataset.counter(9), number(t, 3)], number(t, 3).repeat(), stop_on_empty_dataset=False
    ).take(9),
    "sample_of_one_kind": lambda t: t.Dataset.sample_from_datasets([number(t, 1).repeat(3), number(t, 1).repeat(2)], [0.5, 0.5]),
    "sample_by_weights": lambda t: t.Dataset.sample_from_datasets(
        three(t), t.Dataset.from_tensor_slices(numpy.array([[0, 2, 0], [1, 0, 0], [0, 0, 0.5], [3, 0, 0]], numpy.float32)).repeat(2)
    ),
    "sample_by_weights_stop": lambda t: t.Dataset.sample_from_datasets(
        three(t), t.Dataset.from_tensors(numpy.array([0, 1, 0], numpy.float32)).repeat(), stop_on_empty_dataset=True
    ),
    "sample_by_weights_of_one": lambda t: t.Dataset.sample_from_datasets(
        three(t)[:1], t.Dataset.from_tensors(numpy.ones(1, numpy.float32)).repeat()
    ),
    "sample_of_one": lambda t: t.Dataset.sample_from_datasets(three(t), weights=[0.0, 1.0, 0.0]),
    "window_flat": lambda t: number(t, 7).window(3, shift=2).flat_map(lambda w: w),
    "window_batch": lambda t: number(t, 10).window(4, shift=1, stride=2, drop_remainder=True).flat_map(lambda w: w.batch(4)),
    "window_of_tuple": lambda t: number(t, 7).enumerate(5).window(3, drop_remainder=True).flat_map(
        lambda i, x: t.Dataset.zip((i.batch(3), x.batch(3)))
    ),
    "window_of_dict": lambda t: number(t, 7).map(lambda x: {"a": x, "b": -x}).window(4, 2).flat_map(
        lambda w: t.Dataset.zip({"a": w["a"].batch(2), "first": w["b"].take(2)})
    ),
    "window_inputs_and_targets": lambda t: number(t, 9).window(4, shift=1, drop_remainder=True).flat_map(
        lambda w: t.Dataset.zip((w.take(3).batch(3), w.skip(3)))
    ),
    "window_chain": lambda t: number(t, 20).window(6, 5).flat_map(
        lambda w: w.filter(lambda x: x % 3 != 0).map(lambda x: (x, x * x)).batch(2)
    ),
    "window_part": lambda t: number(t, 7).enumerate(5).window(3).flat_map(lambda i, x: x.batch(2)),
    "window_map": lambda t: number(t, 6).window(3).map(lambda w: w.batch(3)).flat_map(lambda w: w),
    "window_map_value": lambda t: number(t, 7).window(3).map(lambda w: w.reduce(numpy.int64(0), lambda s, x: s + x)),
    "window_in_window": lambda t: number(t, 9).window(5, 3).flat_map(
        lambda w: w.window(2, shift=1, drop_remainder=True).flat_map(lambda v: v.batch(2))
    ),
    "rebatch": lambda t: number(t, 11).batch(4).rebatch(3),
    "rebatch_sizes": lambda t: number(t, 11).batch(4).rebatch([2, 1], drop_remainder=True),
    "group": lambda t: number(t, 20).group_by_window(lambda x: x % 3, lambda key, w: w.batch(4), window_size=4),
    "group_sizes": lambda t: number(t, 20).group_by_window(
        key_func=lambda x: x % 3, reduce_func=lambda key, w: w.map(lambda x: x * 10).batch(10), window_size_func=lambda key: key + 2
    ),
    "group_of_tuple": lambda t: number(t, 9).enumerate().group_by_window(lambda i, x: x % 2, lambda key, w: w.skip(1), 3),
    "group_of_no_end": lambda t: t.Dataset.counter().group_by_window(lambda x: x % 2, lambda key, w: w.batch(2), 2).take(3),
    "bucket_of_no_end": lambda t: t.Dataset.counter().map(lambda x: t.np.stack([x, x])).bucket_by_sequence_length(
        lambda x: length(t, x), [1, 5], [2, 2, 2]
    ).take(2),
    "bucket": lambda t: lists(t).bucket_by_sequence_length(lambda e: length(t, e["many"]), [2, 4], [3, 2, 1]),
    "bucket_boundary": lambda t: lists(t).bucket_by_sequence_length(
        lambda e: length(t, e["many"]), bucket_boundaries=[2, 5], bucket_batch_sizes=[3, 2, 2], pad_to_bucket_boundary=True,
        padding_values={"label": array(0, "int64"), "many": array(-1, "int64")},
    ),
    "bucket_of_one": lambda t: lists(t).map(lambda e: e["many"]).bucket_by_sequence_length(
        lambda x: length(t, x), [3], [4, 4], drop_remainder=True
    ),
    "flat_map_of_slices_of_lists": lambda t: lists(t).flat_map(lambda e: t.Dataset.from_tensor_slices(e["many"])),
    "unique": lambda t: number(t, 30).map(lambda x: x * x % 11).unique(),
    "scan": lambda t: number(t, 6).scan(numpy.int64(1), lambda s, x: (s + x, s * x)),
    "scan_nest": lambda t: number(t, 6).enumerate().scan(
        {"a": numpy.int64(0), "b": (numpy.int64(1), numpy.float32(0.5))},
        lambda s, e: ({"a": s["b"][0], "b": (s["a"] + s["b"][0], s["b"][1])}, {"n": e[0], "f": (s["a"], s["b"][1])}),
    ),
    "reduce": lambda t: t.Dataset.from_tensors(number(t, 6).reduce(numpy.int64(1), lambda s, x: s * 2 + x)),
    "reduce_nest": lambda t: t.Dataset.from_tensors(
        number(t, 6).enumerate().reduce((numpy.int64(0), numpy.int64(1)), lambda s, e: (s[0] + e[1], s[1] + 1))
    ),
    "single_element": lambda t: t.Dataset.from_tensors(number(t, 5).batch(5).get_single_element()),
})  # fmt: skip


def _parsed(t, *texts):
    """Numbers of texts, of which some are none."""
    return t.Dataset.from_tensor_slices(list(texts)).map(lambda x: t.to_number(x, t.int64))


# Some of these are numbers, and what fails is not alone in its batch or at an end.
_TEXTS = (b"1", b"x", b"3", b"4", b"y", b"6", b"7", b"8")


# Of lengths that differ in the second, the third and the fifth of each two.
_WORDS = (b"ab", b"cd", b"e", b"fgh", b"", b"x", b"ij", b"kl", b"mnop", b"q", b"r")


def _raw(t, *texts):
    """The bytes of texts."""
    return t.Dataset.from_tensor_slices(list(texts)).map(lambda x: t.io.decode_raw(x, "uint8"))


def _some_records(t):
    """An Example, what is none, and an Example."""
    good = tfrecord_files.example(label=5)
    kinds = {"label": t.io.FixedLenFeature([], t.int64)}
    records = t.Dataset.from_tensor_slices([good, b"no record", good, b""])
    return records.map(lambda r: t.io.parse_single_example(r, kinds))


CASES.update({
    "cache": lambda t: number(t, 5).cache().repeat(2),
    "cache_file": lambda t: number(t, 5).map(lambda x: (x, x + 1)).cache(f"{t.folder}/cached").repeat(2),
    "snapshot": lambda t: number(t, 5).snapshot(f"{t.folder}/snapshot").repeat(2),
    "shuffle_of_one": lambda t: number(t, 5).shuffle(1, seed=3, reshuffle_each_iteration=False).repeat(2),
    "with_options": lambda t: number(t, 5).with_options(t.Options()),
    "csv": lambda t: t.experimental.CsvDataset(f"{t.folder}/table.csv", [t.int64, t.string, t.float32], header=True).take(1),
    "csv_defaults": lambda t: t.experimental.CsvDataset(f"{t.folder}/table.csv", [[7], [0.25]], header=True, select_cols=[0, 2]),
    "ignore_errors_of_numbers": lambda t: _parsed(t, b"1", b"x", b"3", b"").ignore_errors(),
    "ignore_errors_of_examples": lambda t: _some_records(t).ignore_errors().batch(3),
    "ignore_errors_then_repeat": lambda t: _parsed(t, b"1", b"x", b"3").ignore_errors().repeat(2),
    "ignore_errors_behind_filter": lambda t: _parsed(t, *_TEXTS).filter(lambda x: x != 3).ignore_errors(),
    "ignore_errors_behind_take": lambda t: _parsed(t, *_TEXTS).take(4).ignore_errors(),
    "ignore_errors_behind_take_while": lambda t: _parsed(t, *_TEXTS).take_while(lambda x: x < 7).ignore_errors(),
    "ignore_errors_behind_cache": lambda t: _parsed(t, *_TEXTS).cache().ignore_errors().repeat(2),
    "ignore_errors_behind_scan": lambda t: _parsed(t, *_TEXTS).scan(array(0, "int64"), lambda state, x: (state + x, state * x)).ignore_errors(),
    "ignore_errors_in_scan": lambda t: t.Dataset.from_tensor_slices(list(_TEXTS))
    .scan(array(0, "int64"), lambda state, x: (state + t.to_number(x, t.int64), state))
    .ignore_errors(),
    "ignore_errors_behind_parsed_batches": lambda t: t.Dataset.from_tensor_slices(list(_TEXTS))
    .batch(2)
    .map(lambda x: t.to_number(x, t.int64))
    .ignore_errors(),
    "ignore_errors_behind_flat_map": lambda t: _parsed(t, *_TEXTS).flat_map(lambda x: t.Dataset.from_tensors(x).repeat(2)).ignore_errors(),
    "ignore_errors_behind_interleave": lambda t: _parsed(t, *_TEXTS)
    .interleave(lambda x: t.Dataset.range(2).map(lambda y: x + y), cycle_length=2)
    .ignore_errors(),
    "ignore_errors_behind_concatenate": lambda t: _parsed(t, *_TEXTS[:3])
    .filter(lambda x: x > 1)
    .concatenate(_parsed(t, *_TEXTS[3:]))
    .ignore_errors(),
    "ignore_errors_behind_choose": lambda t: t.Dataset.choose_from_datasets(
        [_parsed(t, *_TEXTS[:3]), _parsed(t, *_TEXTS[3:])], t.Dataset.range(2).repeat(4)
    ).ignore_errors(),
    "ignore_errors_behind_unique": lambda t: _parsed(t, b"1", b"x", b"1", b"2").unique().ignore_errors(),
    "ignore_errors_behind_enumerate": lambda t: _parsed(t, *_TEXTS).enumerate().ignore_errors(),
    "ignore_errors_behind_zip": lambda t: t.Dataset.zip((_parsed(t, *_TEXTS), _parsed(t, b"1", b"2", b"z", b"4", b"5"))).ignore_errors(),
    "ignore_errors_behind_groups": lambda t: _parsed(t, *_TEXTS)
    .group_by_window(lambda x: x % 2, lambda key, window: window.batch(2), window_size=2)
    .ignore_errors(),
    "ignore_errors_behind_batches": lambda t: _raw(t, *_WORDS).batch(2).ignore_errors(),
    "ignore_errors_behind_some_batches": lambda t: _raw(t, *_WORDS).batch(2).take(4).ignore_errors().repeat(2),
    "ignore_errors_behind_batches_of_groups": lambda t: _raw(t, *_WORDS)
    .group_by_window(lambda x: array(0, "int64"), lambda key, window: window.batch(2), window_size=4)
    .ignore_errors(),
    "ignore_errors_behind_buckets": lambda t: _raw(t, *_WORDS)
    .bucket_by_sequence_length(lambda x: t.length_of(x) * 0, [1], [2, 2], no_padding=True)
    .ignore_errors(),
    "unbatch_behind_ignored_batches": lambda t: _raw(t, *_WORDS).batch(2).ignore_errors().unbatch(),
    "unbatch_in_front_of_an_unlike_row": lambda t: _raw(t, *_WORDS).batch(2).unbatch().take(2),
    "assert_cardinality": lambda t: number(t, 9).filter(lambda x: x % 2 == 0).apply(t.experimental.assert_cardinality(5)),
    "pad_to_cardinality": lambda t: number(t, 3).map(lambda x: {"x": x}).apply(t.experimental.pad_to_cardinality(5)),
    "experimental_counter": lambda t: t.experimental.Counter(5, 2).take(3),
    "experimental_enumerate": lambda t: number(t, 3).apply(t.experimental.enumerate_dataset(4)),
    "experimental_from_list": lambda t: t.experimental.from_list([(numpy.float32(1.5), numpy.int64(2)), (numpy.float32(3.5), numpy.int64(4))]),
    "experimental_map_and_batch": lambda t: number(t, 7).apply(t.experimental.map_and_batch(lambda x: x * 2, 3)),
    "experimental_map_and_batch_drop": lambda t: number(t, 7).apply(t.experimental.map_and_batch(lambda x: x * 2, 3, drop_remainder=True)),
    "experimental_parallel_interleave": lambda t: listed(t).apply(t.experimental.parallel_interleave(t.TFRecordDataset, 2, 2)),
    "experimental_shuffle_and_repeat": lambda t: number(t, 4).apply(t.experimental.shuffle_and_repeat(1, 2)),
    "experimental_take_while": lambda t: number(t, 9).apply(t.experimental.take_while(lambda x: x < 4)),
    "experimental_unbatch": lambda t: number(t, 5).batch(2).apply(t.experimental.unbatch()),
    "experimental_unique": lambda t: number(t, 9).map(lambda x: x % 3).apply(t.experimental.unique()),
    "experimental_scan": lambda t: number(t, 5).apply(t.experimental.scan(array(0, "int64"), lambda state, x: (state + x, state * x))),
    "experimental_group_by_window": lambda t: number(t, 9).apply(
        t.experimental.group_by_window(lambda x: x % 2, lambda key, window: window.batch(2), window_size=3)
    ),
    "experimental_choose": lambda t: t.experimental.choose_from_datasets([number(t, 3), number(t, 10, 13)], number(t, 6).map(lambda x: x % 2)),
    "experimental_ignore_errors": lambda t: _parsed(t, b"1", b"x", b"3").apply(t.experimental.ignore_errors()),
})  # fmt: skip


def _pairs(t):
    return t.Dataset.zip((number(t, 4), number(t, 4)))


# What each makes is an error: of the arguments, or of the data when it is read.
MISTAKES = {
    "batch(0)": lambda t: number(t, 4).batch(0),
    "batch(-1)": lambda t: number(t, 4).batch(-1),
    "batch of a fraction": lambda t: number(t, 4).batch(2.5),
    "take of a text": lambda t: number(t, 4).take("x"),
    "shard behind the last": lambda t: number(t, 4).shard(3, 3),
    "shard of none": lambda t: number(t, 4).shard(0, 0),
    "shard before the first": lambda t: number(t, 4).shard(3, -1),
    "window(0)": lambda t: number(t, 4).window(0).flat_map(lambda w: w),
    "window, shift 0": lambda t: number(t, 4).window(2, 0).flat_map(lambda w: w),
    "window, stride 0": lambda t: number(t, 4).window(2, 1, 0).flat_map(lambda w: w),
    "rebatch of scalars": lambda t: number(t, 4).rebatch(2),
    "shuffle(0)": lambda t: number(t, 4).shuffle(0),
    "prefetch(-2)": lambda t: number(t, 4).prefetch(-2),
    "range, no step": lambda t: number(t, 1, 5, 0),
    "range of nothing": lambda t: t.Dataset.range(),
    "zip of a number": lambda t: t.Dataset.zip((number(t, 4), 3)),
    "concatenate, another structure": lambda t: number(t, 4).concatenate(_pairs(t)),
    "concatenate, another type": lambda t: number(t, 4).concatenate(number(t, 4).map(lambda x: x / 2)),
    "unbatch of scalars": lambda t: number(t, 4).unbatch(),
    "batch of unlike lists": lambda t: lists(t).batch(2),
    "unbatch of unlike rows": lambda t: _raw(t, *_WORDS).batch(2).unbatch(),
    "rebatch of unlike rows": lambda t: _raw(t, *_WORDS).batch(2).rebatch(3),
    "padded_batch, too long": lambda t: lists(t).padded_batch(4, padded_shapes={"label": [], "many": [2]}),
    "padded_batch, another structure": lambda t: lists(t).padded_batch(4, padded_shapes={"label": []}),
    "padded_batch, another type": lambda t: number(t, 4).padded_batch(2, padding_values="x"),
    "filter by a number": lambda t: number(t, 4).filter(lambda x: x + 1),
    "filter by a list": lambda t: number(t, 4).filter(lambda x: t.np.stack([x > 1, x > 2])),
    "take_while by a number": lambda t: number(t, 4).take_while(lambda x: x + 1),
    "interleave, no datasets at a time": lambda t: listed(t).interleave(t.TFRecordDataset, cycle_length=0),
    "interleave, no elements in turn": lambda t: listed(t).interleave(t.TFRecordDataset, cycle_length=2, block_length=0),
    "interleave to no dataset": lambda t: listed(t).interleave(lambda path: path),
    "flat_map to no dataset": lambda t: number(t, 4).flat_map(lambda x: x),
    "apply to no dataset": lambda t: number(t, 4).apply(lambda d: 3),
    "slices of unlike tensors": lambda t: t.Dataset.from_tensor_slices((array([1, 2, 3]), array([1, 2]))),
    "slices of a scalar": lambda t: t.Dataset.from_tensor_slices(array(5)),
    "choose behind the last": lambda t: t.Dataset.choose_from_datasets([number(t, 3), number(t, 3)], number(t, 5)),
    "choose by floats": lambda t: t.Dataset.choose_from_datasets([number(t, 3), number(t, 3)], number(t, 2).map(lambda x: x / 2)),
    "choose from none": lambda t: t.Dataset.choose_from_datasets([], number(t, 2)),
    "choose from unlike datasets": lambda t: t.Dataset.choose_from_datasets([number(t, 3), _pairs(t)], number(t, 2)),
    "sample from none": lambda t: t.Dataset.sample_from_datasets([]),
    "sample, another number of weights": lambda t: t.Dataset.sample_from_datasets([number(t, 3), number(t, 3)], weights=[1.0]),
    "sample, unlike datasets": lambda t: t.Dataset.sample_from_datasets([number(t, 3), _pairs(t)]),
    "bucket, another number of sizes": lambda t: lists(t).map(lambda x: x["many"]).bucket_by_sequence_length(t.length_of, [2], [1]),
    "bucket, longer than the last boundary": lambda t: lists(t).map(lambda x: x["many"]).bucket_by_sequence_length(
        t.length_of, [2], [2, 2], pad_to_bucket_boundary=True
    ),
    "group_by_window, no size": lambda t: number(t, 4).group_by_window(lambda x: x % 2, lambda key, window: window.batch(2)),
    "group_by_window, two sizes": lambda t: number(t, 4).group_by_window(
        lambda x: x % 2, lambda key, window: window.batch(2), window_size=2, window_size_func=lambda key: key + 1
    ),
    "group_by_window, a size of 0": lambda t: number(t, 4).group_by_window(lambda x: x % 2, lambda key, window: window.batch(2), window_size=0),
    "group_by_window, a float for a key": lambda t: number(t, 4).group_by_window(lambda x: x / 2, lambda key, window: window.batch(2), window_size=2),
    "group_by_window to no dataset": lambda t: number(t, 4).group_by_window(lambda x: x % 2, lambda key, window: 3, window_size=2),
    "unique of pairs": lambda t: _pairs(t).unique(),
    "single element of none": lambda t: [number(t, 0).get_single_element()],
    "single element of two": lambda t: [number(t, 2).get_single_element()],
    "reduce to another type": lambda t: [number(t, 4).reduce(array(0, "int64"), lambda state, x: (state, x))],
    "reduce of nothing said": lambda t: [number(t, 4).reduce(array(0, "int64"), lambda state, x: None)],
    "scan to another structure": lambda t: number(t, 4).scan(array(0, "int64"), lambda state, x: state),
    "scan to another type": lambda t: number(t, 4).scan(array(0, "int64"), lambda state, x: (state / 2, x)),
    "assert_cardinality, fewer": lambda t: number(t, 4).filter(lambda x: x > 0).apply(t.experimental.assert_cardinality(4)),
    "assert_cardinality, more": lambda t: number(t, 4).filter(lambda x: x >= 0).apply(t.experimental.assert_cardinality(3)),
    "pad_to_cardinality, more": lambda t: number(t, 4).map(lambda x: {"x": x}).apply(t.experimental.pad_to_cardinality(3)),
    "pad_to_cardinality of no dict": lambda t: number(t, 4).apply(t.experimental.pad_to_cardinality(5)),
    "records of no file": lambda t: t.TFRecordDataset(f"{t.folder}/none.tfrecord"),
    "lines of no file": lambda t: t.TextLineDataset(f"{t.folder}/none.txt"),
    "fixed records of no file": lambda t: t.FixedLengthRecordDataset(f"{t.folder}/none.bin", 2),
    "csv of no file": lambda t: t.experimental.CsvDataset(f"{t.folder}/none.csv", [t.int64]),
    "records of 0 bytes": lambda t: t.FixedLengthRecordDataset(f"{t.folder}/fixed.bin", 0),
    "records that are not whole": lambda t: t.FixedLengthRecordDataset(f"{t.folder}/fixed.bin", 3),
    "records of a header and a footer": lambda t: t.FixedLengthRecordDataset(f"{t.folder}/fixed.bin", 2, header_bytes=-1),
    "a damaged record": lambda t: t.TFRecordDataset(f"{t.folder}/damaged.tfrecord"),
    "records that are cut": lambda t: t.TFRecordDataset(f"{t.folder}/cut.tfrecord"),
    "plain records as gzip": lambda t: t.TFRecordDataset(f"{t.folder}/part-0.tfrecord", compression_type="GZIP"),
    "lines as records": lambda t: t.TFRecordDataset(f"{t.folder}/lines.txt"),
    "list_files, none": lambda t: t.Dataset.list_files(f"{t.folder}/none-*"),
    "load of no folder": lambda t: t.Dataset.load(f"{t.folder}/none"),
    "read_file of none": lambda t: t.Dataset.from_tensor_slices([f"{t.folder}/none"]).map(t.io.read_file),
    "a text that is no number": lambda t: _parsed(t, b"1", b"x"),
    "a record that is none": lambda t: _some_records(t),
    "an image that is none": lambda t: t.Dataset.from_tensor_slices([b"no image"]).map(lambda x: t.io.decode_jpeg(x)),
    "csv, a field too few": lambda t: t.experimental.CsvDataset(f"{t.folder}/table.csv", [t.int64, t.string], header=True),
    "csv, a required field": lambda t: t.experimental.CsvDataset(f"{t.folder}/table.csv", [t.int64, t.string, t.float32], header=True),
    "csv, no number": lambda t: t.experimental.CsvDataset(f"{t.folder}/table.csv", [t.int64, t.int64, [0.5]], header=True),
}  # fmt: skip
