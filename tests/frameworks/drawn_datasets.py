"""Draws pipelines that read the same in tf.data and in Penstock: texts of a namespace `t`, which holds either's names.

A structure is a dict, a tuple, or the shape of an int64 tensor as a list, None where only the data tells a size.
"""

import random

VARIANTS = (
    "", "", ".take(5)", ".skip(3)", ".repeat(2)", ".shard(2, 1)", ".filter(lambda *e: t.np.sum(first(e)) % 3 != 1)",
    ".map(lambda *e: turned(e))",
)  # fmt: skip


def leaves(structure, path):
    if isinstance(structure, list):
        return [(path, structure)]
    keys = structure if isinstance(structure, dict) else range(len(structure))
    return [leaf for key in keys for leaf in leaves(structure[key], f"{path}[{key!r}]")]


def each(structure, change):
    if isinstance(structure, list):
        return change(structure)
    if isinstance(structure, dict):
        return {key: each(part, change) for key, part in structure.items()}
    return tuple(each(part, change) for part in structure)


class Drawer:
    def __init__(self, seed):
        self._dice = random.Random(seed)

    def pipeline(self):
        return self._chain(1 + self._below(6), 0)[0]

    def _below(self, count):
        return self._dice.randrange(count)

    def _chain(self, ops, depth):
        text, structure = self._source()
        for _ in range(ops):
            if len(leaves(structure, "")) < 6:
                more, structure = self._op(structure, depth)
                text += more
        return text, structure

    def _source(self):
        kind, rows = self._below(6), 1 + self._below(12)
        if kind < 3:
            return f"t.Dataset.range({self._below(9)}, {self._below(150)}, {1 + self._below(3)})", []
        if kind == 3:
            return f"t.Dataset.from_tensor_slices(array(range({2 * rows})).reshape({rows}, 2))", [2]
        if kind == 4:
            return f"t.Dataset.from_tensor_slices({{'b': array(range({rows})), 'a': array(range({3 * rows})).reshape({rows}, 3)}})", {"b": [], "a": [3]}
        return f"t.Dataset.counter({rows}, 2).take({10 * rows})", []

    def _number(self, structure):
        """A number of an element that is called `e`."""
        path, shape = self._dice.choice(leaves(structure, "e"))
        return f"t.np.sum({path})" if shape else path

    def _lambda(self, structure, body):
        """Functions get the parts of a tuple as arguments."""
        return f"lambda *e: {body}" if isinstance(structure, tuple) else f"lambda e: {body}"

    def _op(self, structure, depth):
        number, kind = self._number(structure), self._below(24)
        rank = max(len(shape) for _, shape in leaves(structure, ""))
        firsts = {shape[0] if shape else "none" for _, shape in leaves(structure, "")}
        has_rows = len(firsts) == 1 and "none" not in firsts
        less = each(structure, lambda shape: shape[1:])
        if kind < 4:
            return self._count(), structure
        if kind < 7:
            return self._map(structure)
        if kind < 10:
            condition = f"{number} % {2 + self._below(5)} != {self._below(3)}"
            return f".{self._dice.choice(('filter', 'filter', 'take_while'))}({self._lambda(structure, condition)})", structure
        if kind < 13 and rank < 3:
            size, drop = 1 + self._below(9), self._below(3) == 0
            op = "padded_batch" if any(None in shape for _, shape in leaves(structure, "")) else "batch"
            return f".{op}({size}, drop_remainder={drop})", each(structure, lambda shape: [size if drop else None, *shape])
        if kind < 16 and has_rows:
            turns = f"cycle_length={1 + self._below(4)}, block_length={1 + self._below(3)}"
            slices = self._lambda(structure, "t.Dataset.from_tensor_slices(e)")
            ops = (".unbatch()", f".flat_map({slices})", f".interleave({slices}, {turns})")
            return self._dice.choice(ops), less
        if kind < 18:
            nested = self._lambda(structure, f"t.Dataset.range({number} % {2 + self._below(5)})")
            return self._dice.choice((".flat_map({})", ".interleave({}, cycle_length=3)")).format(nested), []
        if kind == 18:
            return f".enumerate({self._below(4)})", ([], structure)
        if kind == 19 and depth < 2:
            text, other = self._chain(1 + self._below(3), depth + 1)
            return f".apply(lambda d: t.Dataset.zip((d, {text})))", (structure, other)
        if kind == 20:
            return f".apply(lambda d: d{self._variant()}.concatenate(d{self._variant()}))", structure
        if kind == 21:
            choices = f"t.Dataset.range({self._below(60)}).map(lambda i: i * i % 3)"
            stop = self._below(2) == 0
            sets = ", ".join(f"d{self._variant()}" for _ in range(3))
            return f".apply(lambda d: t.Dataset.choose_from_datasets([{sets}], {choices}, stop_on_empty_dataset={stop}))", structure
        if kind == 22:
            key = self._lambda(structure, f"{number} % {1 + self._below(3)}")
            return f".group_by_window({key}, lambda key, window: window.skip(1), window_size={1 + self._below(5)})", structure
        state = f"lambda s, e: ((s + {number}) % 1000, (s, {number}))"
        return f".scan(array(3), {state})", ([], [])

    def _variant(self):
        return self._dice.choice(VARIANTS)

    def _count(self):
        shards = 1 + self._below(4)
        ops = (f".take({self._below(90)})", f".skip({self._below(9)})", f".shard({shards}, {self._below(shards)})", f".repeat({self._below(4)})", ".cache()")
        return self._dice.choice(ops)

    def _map(self, structure):
        (one, shape), (other, other_shape) = self._dice.choices(leaves(structure, "e"), k=2)
        number = self._number(structure)
        text, made = self._dice.choice(
            (
                (f"{one} * 2 + 1", shape),
                (f"({one}, {other} - 1)", (shape, other_shape)),
                (f"{{'y': {one} % 7, 'x': {other}}}", {"y": shape, "x": other_shape}),
                (f"{{'x': {number}, 'z': ({one}, {number})}}", {"x": [], "z": (shape, [])}),
                (f"t.np.stack([{number}, {number} + 1, {number} * 3])", [3]),
            )
        )
        return f".map({self._lambda(structure, text)})", made
