"""Writes packing.json: which lengths stand in each sequence, as other packers have it for the same documents.

Run by hand, with a Python that has NumPy, pyarrow, grain and trl (`pip install numpy pyarrow grain`, `pip install --no-deps trl`):
python tests/golden/make_packing_goldens.py

Best fit decreasing is TRL's "bfd" and "bfd_split", concatenating is its "wrapped" strategy. First fit decreasing is Grain's first fit
over documents from the longest to the shortest, with as many bins as documents.
"""

import ast
import collections
import importlib.metadata
import importlib.util
import json
import pathlib
import typing

import grain
import grain.experimental
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

NAMES = ("_SegmentTree", "_check_if_columns_can_be_packed", "_pack_bfd", "_pack_wrapped")


def trl_packers():
    """TRL's packers alone: the module that they stand in needs torch."""
    folder = importlib.util.find_spec("trl").submodule_search_locations[0]
    module = ast.parse(pathlib.Path(folder, "data_utils.py").read_text())
    module.body = [part for part in module.body if getattr(part, "name", None) in NAMES]
    names = {"pa": pa, "pyarrow": pa, "pc": pc, "np": np, "Literal": typing.Literal}
    names.update(defaultdict=collections.defaultdict, deque=collections.deque)
    exec(compile(module, "data_utils.py", "exec"), names)
    return names


def documents(lengths):
    return pa.table({"ids": pa.array([np.full(length, number, np.int64) for number, length in enumerate(lengths)])})


def of_trl(packers, method, lengths, size, long_documents):
    if method == "concat":
        rows = packers["_pack_wrapped"](documents([length for length in lengths if length]), size)["ids"].to_pylist()
        return [np.unique(row, return_counts=True)[1].tolist() for row in rows if row]
    return packers["_pack_bfd"](documents(lengths), size, long_documents)["seq_lengths"].to_pylist()


def of_grain(lengths, size):
    """Documents that fit into a sequence."""
    falling = sorted((length for length in lengths if length), reverse=True)
    source = grain.MapDataset.source([{"x": np.ones(length, np.int32)} for length in falling]).to_iter_dataset()
    packed = grain.experimental.FirstFitPackIterDataset(
        source, length_struct={"x": size}, num_packing_bins=max(len(falling), 1), shuffle_bins=False
    )
    return [np.bincount(row["x_segment_ids"])[1:].tolist() for row in packed]


def drawn():
    """Lists of lengths, and the sequence length."""
    random = np.random.default_rng(7)
    yield [3], 8
    yield [8, 8, 8], 8
    yield [5, 4, 4, 5, 3, 0, 3, 1, 1, 8], 8
    yield [1] * 20, 7
    for size, count in [(16, 60), (100, 300), (2048, 1000)]:
        yield random.integers(0, size, count).tolist(), size
        yield np.minimum(random.lognormal(np.log(size / 4), 1.0, count).astype(int), 6 * size).tolist(), size


def main():
    packers = trl_packers()
    cases = []
    for lengths, size in drawn():
        for long_documents in ("split", "truncate"):
            cut = lengths if long_documents == "split" else [min(length, size) for length in lengths]
            pieces = [min(size, length - start) for length in cut for start in range(0, length, size)]
            for method in ("concat", "best_fit", "first_fit_decreasing"):
                if method == "first_fit_decreasing":
                    sequences = of_grain(pieces, size)
                else:
                    sequences = of_trl(packers, method, cut, size, long_documents)
                cases.append({"method": method, "long_documents": long_documents, "sequence_length": size, "lengths": lengths,
                              "sequences": sequences})  # fmt: skip
    found = {"trl": importlib.metadata.version("trl"), "grain": importlib.metadata.version("grain"), "cases": cases}
    text = json.dumps(found).replace('{"method"', '\n{"method"')
    pathlib.Path(__file__).with_name("packing.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
