"""Writes grouping.json: chains of the ops that choose among datasets and that gather elements, and what tf.data makes of each.

Run by hand, with a Python that has TensorFlow:  python tests/golden/make_grouping_goldens.py

Cases are built and written as in make_order_goldens.py.
"""

import json
import pathlib

import numpy as np
import tensorflow as tf

import make_order_goldens as order
from make_order_goldens import Chain, case, inputs, numbers, stage

Dataset = tf.data.Dataset


def counter(start=None, step=None):
    return Chain(stage("counter", start=start, step=step), Dataset.counter(start or 0, 1 if step is None else step))


def source_cases():
    for start, step in [(None, None), (5, None), (-3, 2), (10, -4), (7, 0)]:
        case(f"counter({start}, {step})", counter(start, step).take(5))
    case("counter, skip shard batch", counter(2, 3).skip(4).shard(3, 1).take(7).batch(3), batched=True)
    case("counter, zip", numbers(4).zip(counter(1)))
    case("counter, take repeat", counter(1).take(3).repeat(2))


def choose(choices, *chains, stop=None):
    option = "" if stop is None else f" stop_on_empty_dataset: {str(stop).lower()}"
    return Chain(f"{choices.text} stage {{ choose_from_datasets {{ {inputs(chains)}{option} }} }}",
                 Dataset.choose_from_datasets([c.dataset for c in chains], choices.dataset, True if stop is None else stop))


def choices_of(*values):
    return order.slices(np.array(values, np.int64))


def sample(*chains, weights=None, stop=None):
    """What the draws decide is no matter of the result here."""
    option = "".join(f" weight: {w}" for w in weights or []) + ("" if stop is None else f" stop_on_empty_dataset: {str(stop).lower()}")
    return Chain(f"stage {{ sample_from_datasets {{ {inputs(chains)}{option} }} }}",
                 Dataset.sample_from_datasets([c.dataset for c in chains], weights, seed=1, stop_on_empty_dataset=bool(stop)))


def choosing_cases():
    three = (numbers(10, 13), numbers(20, 22), numbers(30, 36))
    for stop in (None, True, False):
        for values in [(0, 1, 2, 0, 1, 2, 0, 1, 2), (2, 2, 2, 2), (1, 1, 1, 0, 2), (0, 0, 0, 0, 1, 1, 1, 2), (1,), (0, 2, 1, 1, 1, 2, 0)]:
            case(f"choose {values}, stop {stop}", choose(choices_of(*values), *three, stop=stop))
        case(f"choose, endless choices, stop {stop}", choose(numbers(3).repeat(), *three, stop=stop).batch(4), batched=True)
        case(f"choose, an empty input, stop {stop}", choose(choices_of(0, 1, 2, 0, 2), numbers(3), numbers(0), numbers(5, 9), stop=stop))
    case("choose, all have ended", choose(numbers(2).repeat(5), numbers(2), numbers(5, 7), stop=False).repeat(2))
    case("choose, enumerate", choose(choices_of(1, 2, 0), *three).enumerate(2))
    case("choose by what values decide", choose(numbers(3).repeat(4).filter("value != 1", lambda x: x != 1), *three))
    case("choose of pairs", choose(choices_of(1, 0, 0, 1), numbers(4).enumerate(), numbers(10, 12).enumerate(5)).batch(3), batched=True)
    case("choose of tuples of unlike widths", choose(choices_of(1, 0, 1), numbers(4).enumerate(), numbers(10, 12).zip(numbers(5))))
    case("choose, filtered inputs", choose(choices_of(1, 0, 1, 0, 0), numbers(9).filter("value % 2 == 1", lambda x: x % 2 == 1),
                                           numbers(9).filter("value > 6", lambda x: x > 6)).repeat(2))
    case("choose, no such input", choose(choices_of(0, 3), *three), expect=order_rows(10), error="expected a choice from 0 to 2, found 3",
         differs="an error of another wording")
    case("choose, a negative choice", choose(choices_of(0, -1), *three), expect=order_rows(10), error="expected a choice from 0 to 2, found -1",
         differs="an error of another wording")
    case("sample, one input", sample(numbers(5)))
    case("sample, only one with a weight", sample(numbers(5), numbers(10, 14), weights=[0.0, 2.5]).batch(3), batched=True)
    case("sample, only one with a weight, stop", sample(numbers(5), numbers(10, 14), weights=[1.0, 0.0], stop=True))
    case("sample, equal inputs", sample(numbers(1).repeat(5), numbers(1).repeat(4), numbers(0)))
    case("sample, no weight at all", sample(numbers(5), numbers(10, 14), weights=[0.0, 0.0]))


def order_rows(*values):
    return [{"rows": 1, "tensors": {"value": [value]}} for value in values]


def window(chain, size, shift=None, stride=None, drop=None, nested="", then=lambda w: w):
    """`nested` is the text of what becomes of a window, `then` the same in TensorFlow."""
    options = {"size": size, "shift": shift, "stride": stride}
    text = " ".join(f"{name}: {value}" for name, value in options.items() if value is not None)
    text += " drop_remainder: true" if drop else ""
    text += f" input {{ {nested} }}" if nested else ""
    made = chain.dataset.window(size, shift, stride or 1, bool(drop)).flat_map(
        lambda *parts: then(*parts) if len(parts) > 1 or not isinstance(parts[0], dict) else Dataset.zip(parts[0]).apply(then))
    return chain.then(f"stage {{ window {{ {text} }} }}", made)


def batched_window(chain, size, *arguments, rows=None, **options):
    rows = rows or size
    return window(chain, size, *arguments, nested=f"stage {{ batch {{ batch_size: {rows} }} }}", then=lambda w: w.batch(rows), **options)


def window_cases():
    ten = numbers(10)
    for size, shift, stride in [(1, None, None), (3, None, None), (4, 1, None), (3, 2, None), (3, 5, None), (2, 1, 3), (3, 2, 2), (3, 7, 2),
                                (10, 1, None), (11, 4, None), (5, 11, None), (2, 3, 4)]:
        for drop in (False, True):
            case(f"window({size}, {shift}, {stride}, {drop})", batched_window(ten, size, shift, stride, drop=drop), batched=True)
            case(f"window({size}, {shift}, {stride}, {drop}), flat", window(ten, size, shift, stride, drop=drop))
    case("window of nothing", batched_window(numbers(0), 3), batched=True)
    case("window, two batches", batched_window(ten, 5, 3, rows=2), batched=True)
    case("window, repeat", batched_window(ten, 4, 3).repeat(2), batched=True)
    case("repeat, window", batched_window(numbers(4).repeat(3), 5, 2), batched=True)
    case("window, skip take shard", batched_window(numbers(60), 4, 3).skip(2).take(9).shard(2, 1), batched=True)
    case("window, take inside", window(ten, 5, nested="stage { take { count: 2 } }", then=lambda w: w.take(2)).batch(3), batched=True)
    case("window, skip batch inside",
         window(ten, 4, 1, drop=True, nested="stage { skip { count: 1 } } stage { batch { batch_size: 3 } }", then=lambda w: w.skip(1).batch(3)),
         batched=True)
    case("window, repeat inside", window(ten, 3, nested="stage { repeat { count: 2 } }", then=lambda w: w.repeat(2)).batch(4), batched=True)
    case("window, filter inside", window(ten, 4, 2, nested='stage { filter { predicate: "value % 3 != 0" } } stage { batch { batch_size: 3 } }',
                                         then=lambda w: w.filter(lambda x: x % 3 != 0).batch(3)), batched=True)
    case("window, map inside", window(ten, 3, 2, nested='stage { map { out: "value = value * 10" structure: "null" } } stage { batch { batch_size: 3 } }',
                                      then=lambda w: w.map(lambda x: x * 10).batch(3)), batched=True)
    case("window, enumerate inside", window(ten, 3, 2, nested="stage { enumerate {} }", then=lambda w: w.enumerate()))
    case("window, concatenate inside", window(ten, 4, nested="stage { concatenate { input { stage { range { start: 90 stop: 92 } } } } }",
                                              then=lambda w: w.concatenate(Dataset.range(90, 92))).batch(5), batched=True)
    case("window of a window", window(ten, 6, 3, nested="stage { window { size: 2 shift: 1 drop_remainder: true input { stage { batch { batch_size: 2 } } } } }",
                                      then=lambda w: w.window(2, 1, 1, True).flat_map(lambda v: v.batch(2))), batched=True)
    case("window of a map", batched_window(ten.then('stage { map { out: "value = value * 2" structure: "null" } }', ten.dataset.map(lambda x: x * 2)), 3, 1), batched=True)
    case("window of dicts", window(ten.dict_of(a=2, b=-1), 4, 3, nested="stage { batch { batch_size: 4 } }", then=lambda w: w.batch(4)), batched=True)
    case("window of a filter", batched_window(numbers(40).filter("value % 3 == 1", lambda x: x % 3 == 1), 4, 1, drop=True), batched=True)
    case("window of batches", window(ten.batch(2), 3, 1, nested="stage { batch { batch_size: 3 } }", then=lambda w: w.batch(3)), batched=True)
    pairs = numbers(9).zip(numbers(50, 70))
    case("window of pairs, zipped", window(pairs, 4, 3, nested="stage { batch { batch_size: 4 } }",
                                           then=lambda a, b: Dataset.zip((a.batch(4), b.batch(4)))), batched=True)
    part = ["stage { window_part { component: %d } }" % i for i in (0, 1)]
    case("window of pairs, its parts apart",
         window(pairs, 4, 2, nested=f"stage {{ zip {{ input {{ {part[0]} stage {{ skip {{ count: 1 }} }} stage {{ batch {{ batch_size: 2 }} }} }} "
                f"input {{ {part[1]} stage {{ batch {{ batch_size: 3 }} }} }} }} }}",
                then=lambda a, b: Dataset.zip((a.skip(1).batch(2), b.batch(3)))))
    case("window, inputs and targets",
         window(ten, 5, 1, drop=True, nested="stage { zip { input { stage { window_part {} } stage { take { count: 4 } } stage { batch { batch_size: 4 } } } "
                "input { stage { window_part {} } stage { skip { count: 4 } } } } }",
                then=lambda w: Dataset.zip((w.take(4).batch(4), w.skip(4)))))
    nested_pairs = numbers(6).zip(numbers(10, 16)).zip(numbers(20, 26).dict_of(x=1, y=2))
    case("window of a nest, a part that is a tuple",
         window(nested_pairs, 3, nested="stage { window_part { component: 0 } } stage { batch { batch_size: 2 } }",
                then=lambda a, b: Dataset.zip(a).batch(2)), batched=True)
    case("window of a nest, a part that is a dict",
         window(nested_pairs, 3, nested="stage { window_part { component: 1 } } stage { batch { batch_size: 2 } }",
                then=lambda a, b: Dataset.zip(b).batch(2)), batched=True)


def rebatch(chain, sizes, drop=False):
    text = " ".join(f"batch_size: {size}" for size in np.atleast_1d(sizes))
    return chain.then(f"stage {{ rebatch {{ {text}{' drop_remainder: true' if drop else ''} }} }}", chain.dataset.rebatch(sizes, drop))


def rebatch_cases():
    for sizes in (3, 5, 7, 30, [2, 1], [4, 3, 5], [1, 2, 3], [30, 1]):
        for drop in (False, True):
            case(f"rebatch({sizes}, {drop})", rebatch(numbers(23).batch(5), sizes, drop), batched=True)
            case(f"rebatch({sizes}, {drop}), repeat", rebatch(numbers(23).batch(5, True), sizes, drop).repeat(2), batched=True)
    case("rebatch of pairs", rebatch(numbers(9).enumerate(3).batch(4), 3), batched=True)
    case("rebatch of nothing", rebatch(numbers(0).batch(4), 3), batched=True)
    case("rebatch of rows", rebatch(numbers(5).then('stage { map { out: "value = value + [0, 10, 20]" structure: "null" } }',
                                                    Dataset.range(5).map(lambda x: x + tf.constant([0, 10, 20], tf.int64))), [4, 2]), batched=True)


def group(chain, key, key_of, size, size_of=None, nested="stage { batch { batch_size: 100 } }", then=lambda w: w.batch(100)):
    window_size = f"window_size: {size}" if size_of is None else f'window_size_of_key: "{size}"'
    given = {"window_size": size} if size_of is None else {"window_size_func": size_of}
    made = chain.dataset.group_by_window(key_func=key_of, reduce_func=lambda _, w: then(w), **given)
    text = f" input {{ {nested} }}" if nested else ""
    return chain.then(f'stage {{ group_by_window {{ key: "{key}" {window_size}{text} }} }}', made)


def group_cases():
    def modulo(n):
        return f"value % {n}", lambda x: x % n

    for count, n, size in [(20, 3, 4), (20, 1, 7), (5, 9, 2), (30, 4, 1), (0, 3, 2), (17, 2, 100)]:
        case(f"group_by_window {count}, {n}, {size}", group(numbers(count), *modulo(n), size), batched=True)
    case("group_by_window, negative keys", group(numbers(20), "2 - value % 5", lambda x: 2 - x % 5, 3), batched=True)
    case("group_by_window, sizes of keys", group(numbers(40), *modulo(4), "key + 1", lambda key: key + 1), batched=True)
    case("group_by_window, small batches", group(numbers(40), *modulo(3), 7, nested="stage { batch { batch_size: 3 } }", then=lambda w: w.batch(3)),
         batched=True)
    case("group_by_window, elements", group(numbers(12), *modulo(3), 2, nested="", then=lambda w: w))
    case("group_by_window, take inside", group(numbers(30), *modulo(3), 5, nested="stage { take { count: 2 } }", then=lambda w: w.take(2)))
    elements = group(numbers(12), *modulo(3), 2, nested="", then=lambda w: w)
    case("group_by_window, unique", elements.then("stage { unique {} }", elements.dataset.unique()))
    case("choose by groups", choose(elements.take(3).repeat(2), *[numbers(10 * i, 10 * i + 9) for i in range(9)]))
    case("group_by_window, repeat", group(numbers(10), *modulo(3), 2).repeat(2), batched=True)
    case("group_by_window, of dicts", group(numbers(20).dict_of(a=1, b=7), "a % 3", lambda d: d["a"] % 3, 4), batched=True)
    case("group_by_window, skip take", group(numbers(100), *modulo(7), 5).skip(3).take(8), batched=True)
    case("group_by_window, a size of 0", group(numbers(9), *modulo(3), "key - 1 + 0 * key", lambda key: key - 1), expect=[],
         error="expected a window size of at least 1, found -1 (key 0)", differs="an error of another wording")


LISTS = [[1], [2, 3, 4], [5, 6], [], [7, 8, 9, 10, 11], [12, 13], [14], [15, 16, 17, 18, 19, 20, 21], [22, 23, 24], [25, 26], [27, 28, 29, 30]]


def lists(words=False):
    """Examples with lists of any length."""
    feature = tf.train.Feature
    payloads = []
    for values in LISTS:
        kinds = {"v": feature(int64_list=tf.train.Int64List(value=values))}
        if words:
            kinds["w"] = feature(bytes_list=tf.train.BytesList(value=[b"x" * (v % 4) for v in values]))
        payloads.append(tf.train.Example(features=tf.train.Features(feature=kinds)).SerializeToString())
    name = order.write(f"lists-{int(words)}.tfrecord", order.frame(payloads))
    spec = {"v": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}
    text = "feature { key: 'v' int64 { variable_length: true } }"
    if words:
        spec["w"] = tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True)
        text += " feature { key: 'w' bytes { variable_length: true } }"
    chain = order.records(name)
    return chain.then(f"stage {{ parse_example {{ {text} }} }}", chain.dataset.map(lambda x: tf.io.parse_single_example(x, spec)))


def bucket(chain, boundaries, sizes, length="shape(v)[0]", more="", **options):
    text = " ".join([*(f"bucket_boundary: {b}" for b in boundaries), *(f"bucket_batch_size: {s}" for s in sizes)])
    text += "".join(f" {name}: true" for name in ("pad_to_bucket_boundary", "no_padding", "drop_remainder") if options.get(name))
    made = chain.dataset.bucket_by_sequence_length(lambda d: tf.shape(d["v"])[0], boundaries, sizes, **options)
    return chain.then(f'stage {{ bucket_by_sequence_length {{ element_length: "{length}" {text}{more} }} }}', made)


def bucket_cases():
    for words in (False, True):
        chain = lists(words)
        for boundaries, sizes in [([3], [2, 2]), ([2, 4], [3, 2, 1]), ([1, 3, 5, 8], [4, 2, 2, 1, 1]), ([100], [4, 1]), ([2, 3], [1, 1, 1])]:
            for drop in (False, True):
                case(f"bucket {boundaries} {sizes}, drop {drop}, words {words}", bucket(chain, boundaries, sizes, drop_remainder=drop), batched=True)
        case(f"bucket to the boundary, words {words}", bucket(chain, [2, 4, 8], [3, 2, 2, 1], pad_to_bucket_boundary=True), batched=True)
        case(f"bucket, repeat, words {words}", bucket(chain, [3], [2, 2]).repeat(2), batched=True)
    chain = lists()
    case("bucket, a value", bucket(chain, [3, 5], [2, 2, 2], more=" padding_value { feature: 'v' int64_value: -1 }",
                                   padding_values={"v": np.int64(-1)}), batched=True)
    case("bucket to the boundary, a value", bucket(chain, [3, 5, 9], [2, 2, 2, 2], more=" padding_value { feature: 'v' int64_value: -1 }",
                                                   padding_values={"v": np.int64(-1)}, pad_to_bucket_boundary=True), batched=True)
    case("bucket, a shape", bucket(chain, [3, 5], [2, 2, 2], more=" padded_shape { feature: 'v' shape: 9 }", padded_shapes={"v": [9]}), batched=True)
    case("bucket without padding", bucket(chain, [1, 2, 3, 4, 5, 6, 7], [2, 2, 2, 2, 2, 2, 2, 2], no_padding=True), batched=True)
    case("bucket to the boundary, one is too long", bucket(chain, [2, 4], [9, 9, 9], pad_to_bucket_boundary=True), batched=True, expect=[],
         error="expected a length below the last boundary, 4, found 5", differs="an error of another wording")


def unique_cases():
    def unique(chain):
        return chain.then("stage { unique {} }", chain.dataset.unique())

    for values in ([3, 1, 3, 3, 2, 1, 5], [0], [7, 7, 7], []):
        case(f"unique {values}", unique(order.slices(np.array(values, np.int64)) if values else numbers(0)))
    case("unique, repeat", unique(numbers(5).repeat(3)).repeat(2))
    case("unique, batch", unique(order.slices(np.array([i * i % 11 for i in range(40)], np.int64))).batch(4), batched=True)
    texts = np.array([b"a", b"b", b"a", b"", b"ab", b"b", b"", b"c"])
    case("unique strings", unique(order.slices(texts)))
    case("unique rows", unique(order.slices(np.array([[1, 2], [1, 3], [1, 2], [2, 1], [1, 3]], np.int64))))


def scan_cases():
    def scan(chain, initial, state, outs, function):
        text = " ".join([f'initial_state {{ name: "{name}" int_value: {value} }}' for name, value in initial.items()]
                        + [f'state: "{name} = {expression}"' for name, expression in state.items()]
                        + [f'out: "{name} = {expression}"' for name, expression in outs.items()])
        return chain.then(f"stage {{ scan {{ {text} }} }}",
                          chain.dataset.scan({name: np.int64(value) for name, value in initial.items()}, function))

    def sums(s, x):
        return {"s": s["s"] + x}, {"y": s["s"] + x}

    running = scan(numbers(8), {"s": 0}, {"s": "s + value"}, {"y": "s + value"}, sums)
    case("scan, sums", running)
    case("scan, repeat", running.repeat(2).batch(5), batched=True)
    case("scan, of nothing", scan(numbers(0), {"s": 4}, {"s": "s + value"}, {"y": "s + value"}, sums))

    def fibonacci(s, x):
        return {"a": s["b"], "b": s["a"] + s["b"]}, {"n": x, "f": s["a"]}

    case("scan, two states", scan(numbers(12), {"a": 0, "b": 1}, {"a": "b", "b": "a + b"}, {"n": "value", "f": "a"}, fibonacci).batch(5),
         batched=True)
    case("scan, filter before and behind",
         scan(numbers(30).filter("value % 4 != 0", lambda x: x % 4 != 0), {"s": 1}, {"s": "s + value"}, {"y": "s + value"}, sums)
         .filter("y % 2 == 0", lambda d: d["y"] % 2 == 0).shard(2, 1))


def reduce_cases():
    for count in (0, 1, 9):
        value = Dataset.range(count).reduce(np.int64(5), lambda s, x: s * 2 + x)
        case(f"reduce of {count}",
             Chain(f"{numbers(count).dict_of(x=1).text} stage {{ reduce {{ initial_state {{ name: \"value\" int_value: 5 }} "
                   f'state: "value = value * 2 + x" structure: "null" }} }}', Dataset.from_tensors(value)))
    case("reduce of windows", window(numbers(10).dict_of(x=1), 4, 3,
                                     nested='stage { reduce { initial_state { name: "s" int_value: 0 } state: "s = s + x" } }',
                                     then=lambda w: Dataset.from_tensors({"s": w.reduce(np.int64(0), lambda s, d: s + d["x"])})))


def cardinality_cases():
    def asserted(chain, count):
        return chain.then(f"stage {{ assert_cardinality {{ cardinality: {count} }} }}",
                          chain.dataset.apply(tf.data.experimental.assert_cardinality(count)))

    def padded(chain, count, key=None):
        option = f' mask_key: "{key}"' if key else ""
        return chain.then(f"stage {{ pad_to_cardinality {{ cardinality: {count}{option} }} }}",
                          chain.dataset.apply(tf.data.experimental.pad_to_cardinality(count, key or "valid")))

    case("assert_cardinality", asserted(numbers(5), 5).batch(2), batched=True)
    case("assert_cardinality of a filter", asserted(numbers(9).filter("value % 2 == 0", lambda x: x % 2 == 0), 5).repeat(2))
    case("assert_cardinality, fewer", asserted(numbers(3), 5), expect=order_rows(0, 1, 2), error="expected 5 elements, found 3",
         differs="an error of another wording")
    case("assert_cardinality, more", asserted(numbers(7), 5), expect=order_rows(0, 1, 2, 3, 4), error="expected 5 elements, found more",
         differs="an error of another wording")
    for count in (4, 5, 11):
        case(f"pad_to_cardinality({count})", padded(numbers(4).dict_of(a=2, b=3), count))
    case("pad_to_cardinality, a name", padded(numbers(4).dict_of(a=2), 7, "mask").batch(3), batched=True)


def csv(name, data, columns, compression="", expect=None, error=None, **options):
    """`columns` are pairs of a type's name and the value of a missing field, or None."""
    def literal(value):
        if isinstance(value, str):
            return order.quoted(value.encode())
        return repr(value) if isinstance(value, float) else order.literal(value)

    path = f"{name.replace(' ', '-').replace(',', '')}.csv"
    order.write(path, order.COMPRESS[compression](data))
    fields, defaults = [], []
    for dtype, default in columns:
        kind = {"s": "string_value", "i": "int_value"}.get(dtype[0], "float_value")
        shown = "" if default is None else f" {kind}: {literal(default)}"
        fields.append(f'column {{ dtype: "{dtype}"{shown} }}')
        dtype = tf.as_dtype(dtype)
        defaults.append(dtype if default is None else tf.constant([default], dtype))
    text = " ".join([f'files: "{order.PLACE}{path}"', *fields])
    for option, value in options.items():
        for item in value if isinstance(value, list) else [value]:
            text += f" {option.replace('select_cols', 'select_col')}: {literal(item)}"
    if compression:
        text += f' compression: "{compression}"'
    made = tf.data.experimental.CsvDataset(str(order.FOLDER / path), defaults, compression_type=compression, **options)
    case(f"csv, {name}", Chain(f"stage {{ csv {{ {text} }} }}", made), expect=expect, error=error,
         differs="an error of another wording" if error else None)


def csv_cases():
    three = [("int32", None), ("float32", 0.5), ("string", "none")]
    rows = b'1,2.5,a\n-2,,"b"\r\n3,1e3,"c,""d"""\n4,-inf,\n5,0.1,"e\nf"\n'
    one = [{"rows": 1, "tensors": {"0": ["01000000"], "1": ["00002040"], "2": ["61"]}}]
    csv("kinds", rows, three)
    csv("no end", rows[:-1], three)
    csv("compressed", rows, three, compression="GZIP")
    csv("header", b"n,x,s\n" + rows, three, header=True)
    csv("only a header", b"n,x,s\n", three, header=True)
    csv("a header of several lines", b'n,"x\r\nof ""all""\n",s\r\n' + rows, three, header=True)
    csv("a header with lone returns", b"n,x,s\r1,2,a\r3,4,b\r", three, header=True)
    csv("a header of marks that are none", b'n,"x,s\n1,2,"a"\n', three, header=True, use_quote_delim=False)
    csv("a header of no end", b"n,x,s", three, header=True)
    csv("a header that is not closed", b'n,"x,s\n1,2,a\n', three, header=True, expect=[], error="a quotation mark of the header is not closed")
    csv("empty", b"\n", [("string", "none")])
    csv("lone returns", b"1,2,a\r3,4,b\r", three)
    csv("tabs", b"1\t2\t\"a\tb\"\n3\t4\tc,d\n", three, field_delim="\t")
    csv("no quotes", b'1,2,"a"\n3,4,b"c\n', three, use_quote_delim=False)
    csv("a text for nothing", b"NA,NA,NA\n1,2,\n", [("int64", 7), ("float64", -1.5), ("string", "none")], na_value="NA")
    csv("selected", rows, [("float32", 0.5)], select_cols=[1])
    csv("two selected", rows, [("int64", None), ("string", "")], select_cols=[0, 2])
    csv("spaces", b"1, 2 ,  a b \n", three)
    csv("large", b"9223372036854775807,1e308\n-9223372036854775808,-1e-308\n", [("int64", None), ("float64", None)])
    csv("quotes alone", b'"1","2.5",""\n', three)
    csv("fewer fields", b"1,2.5,a\n2,3\n", three, expect=one, error="expected 3 fields, found fewer")
    csv("more fields", b"1,2.5,a\n2,3,b,c\n", three, expect=one, error="expected 3 fields, found more")
    csv("a required field is missing", b"1,2.5,a\n,3,b\n", three, expect=one, error="a required field is missing (field 0, byte 0 of the record)")
    csv("no number", b"1,2.5,a\n2,3x,b\n", three, expect=one, error='expected a value of float32, found "3x" (field 1, byte 2 of the record)')
    csv("too large a number", b"1,2.5,a\n3000000000,3,b\n", three, expect=one, error='expected a value of int32, found "3000000000"')
    csv("a mark inside", b'1,2.5,a\n2,3,b"c\n', three, expect=one, error="has one inside (byte 5 of the record)")
    csv("a mark behind a field", b'1,2.5,a\n2,3,"b"c\n', three, expect=one, error="expected a delimiter after the closing quotation mark")
    csv("a mark that is not closed", b'1,2.5,a\n2,3,"b\n', three, expect=one, error="a quotation mark is not closed (byte 4 of the record)")


def main():
    source_cases()
    csv_cases()
    choosing_cases()
    window_cases()
    rebatch_cases()
    group_cases()
    bucket_cases()
    unique_cases()
    scan_cases()
    reduce_cases()
    cardinality_cases()
    document = {"tensorflow": tf.__version__, "files": order.files}
    lines_of_cases = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in order.cases)
    head = json.dumps(document, separators=(",", ":"))[:-1]
    path = pathlib.Path(__file__).with_name("grouping.json")
    path.write_text(f'{head},\n"cases":[\n{lines_of_cases}\n]}}\n')
    print(len(order.cases), "cases,", path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
