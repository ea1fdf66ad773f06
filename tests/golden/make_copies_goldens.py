"""Writes copies.json: pipelines in which elements come more than once, and which of their draws are equal in tf.data.

Run by hand, with a Python that has TensorFlow:  python tests/golden/make_copies_goldens.py

A case is built once, as a text of stages and as a tf.data.Dataset side by side. Its elements are dicts of `v`, a number that follows from
the order, and of draws by random functions that stand in different places. The result holds `v`, and for each draw a list of numbers: two
elements have the same one where tf.data has drawn the same for both. What is drawn is of no matter.
"""

import json
import pathlib

import tensorflow as tf

Dataset = tf.data.Dataset
MOST = 10**15
cases = []


def outs(names):
    return " ".join(f'out: "{name} = {name}"' for name in names)


def random_text(shape=""):
    return f"random_uniform({shape}dtype=\\\"int64\\\", maxval={MOST})"


class Chain:
    def __init__(self, text, dataset, names=("v",)):
        self.text, self.dataset, self.names = text, dataset, tuple(names)

    def then(self, text, dataset, names=None):
        return Chain(f"{self.text} stage {{ {text} }}".strip(), dataset, names or self.names)

    def draw(self, name):
        def function(element):
            return {**element, name: tf.random.uniform(tf.shape(element["v"]), maxval=MOST, dtype=tf.int64)}

        # Of a batch: one for each row, which needs no shape here.
        text = f'map {{ {outs(self.names)} out: "{name} = {random_text()}" }}'
        return self.then(text, self.dataset.map(function), (*self.names, name))

    def repeat(self, count=None):
        return self.then(f"repeat {{ {'' if count is None else f'count: {count}'} }}", self.dataset.repeat(count))

    def take(self, count):
        return self.then(f"take {{ count: {count} }}", self.dataset.take(count))

    def skip(self, count):
        return self.then(f"skip {{ count: {count} }}", self.dataset.skip(count))

    def all(self):
        """What values might decide, though all of them stay."""
        return self.then('filter { predicate: "v >= 0" }', self.dataset.filter(lambda element: element["v"] >= 0))

    def batch(self, size):
        return self.then(f"batch {{ batch_size: {size} }}", self.dataset.batch(size))

    def unbatch(self):
        return self.then("unbatch {}", self.dataset.unbatch())

    def cache(self):
        return self.then("cache {}", self.dataset.cache())

    def shuffle_of_one(self):
        return self.then("shuffle { buffer_size: 1 seed: 3 }", self.dataset.shuffle(1))

    def doubled(self):
        """Each element becomes two rows of one batch."""
        text = "map { " + " ".join(f'out: "{name} = {name} + [0, 0]"' for name in self.names) + " }"
        return self.then(text, self.dataset.map(lambda element: {name: tf.stack([value, value]) for name, value in element.items()}))

    def scan(self):
        text = f'scan {{ initial_state {{ name: "count" int_value: 0 }} state: "count = count + 1" {outs(self.names)} }}'
        return self.then(text, self.dataset.scan(tf.constant(0, tf.int64), lambda count, element: (count + 1, element)))

    def flat_map(self, inside):
        """`inside` makes a chain of one that holds an element alone."""
        return self._nested("flat_map", inside, "", self.dataset.flat_map)

    def interleave(self, inside, cycle_length, block_length):
        return self._nested(
            "interleave",
            inside,
            f" cycle_length: {cycle_length} block_length: {block_length}",
            lambda function: self.dataset.interleave(function, cycle_length=cycle_length, block_length=block_length),
        )

    def _nested(self, op, inside, options, apply):
        made = []

        def function(element):
            made.append(inside(Chain("", Dataset.from_tensors(element), self.names)))
            return made[-1].dataset

        dataset = apply(function)
        return self.then(f"{op} {{ input {{ {made[-1].text} }}{options} }}", dataset, made[-1].names)

    def window(self, size, shift, inside):
        made = []

        def function(window):
            made.append(inside(Chain("", Dataset.zip(window), self.names)))
            return made[-1].dataset

        dataset = self.dataset.window(size, shift, drop_remainder=True).flat_map(function)
        text = f"window {{ size: {size} shift: {shift} drop_remainder: true input {{ {made[-1].text} }} }}"
        return self.then(text, dataset, made[-1].names)

    def group(self, size, inside):
        made = []

        def function(_, window):
            made.append(inside(Chain("", window, self.names)))
            return made[-1].dataset

        dataset = self.dataset.group_by_window(lambda element: element["v"] % 2, function, window_size=size)
        text = f'group_by_window {{ key: "v % 2" window_size: {size} input {{ {made[-1].text} }} }}'
        return self.then(text, dataset, made[-1].names)


def numbers(count, first=0):
    text = f"stage {{ range {{ start: {first} stop: {first + count} }} }} stage {{ map {{ out: \"v = value\" }} }}"
    return Chain(text, Dataset.range(first, first + count).map(lambda value: {"v": value}))


def concatenated(*chains):
    dataset = chains[0].dataset
    for chain in chains[1:]:
        dataset = dataset.concatenate(chain.dataset)
    return Chain(f"stage {{ concatenate {{ {inputs(chains)} }} }}", dataset, chains[0].names)


def inputs(chains):
    return " ".join(f"input {{ {chain.text} }}" for chain in chains)


def zipped(first, second):
    """Both elements in one, the second one's names with a prefix."""
    names = [*first.names, *(f"second_{name}" for name in second.names)]
    text = f"stage {{ zip {{ {inputs((first, second))} }} }} stage {{ map {{ " + " ".join(
        [*(f'out: "{name} = feature(\\"0/{name}\\")"' for name in first.names), *(f'out: "second_{name} = feature(\\"1/{name}\\")"' for name in second.names)]
    ) + " } }"
    dataset = Dataset.zip(first.dataset, second.dataset).map(lambda a, b: {**a, **{f"second_{name}": value for name, value in b.items()}})
    return Chain(text, dataset, names)


def with_element(first, element):
    """Pairs of the elements of a dataset and, each time, of the element around it."""
    return zipped(first, Chain(f"stage {{ window_part {{}} }} {element.text}", element.dataset, element.names).repeat())


def chosen(pattern, *chains):
    """Elements of the datasets whose numbers stand in the pattern, again and again."""
    values = " ".join(f"int_value: {number}" for number in pattern)
    chooser = f"stage {{ from_tensor_slices {{ tensor {{ shape: {len(pattern)} {values} }} }} }} stage {{ repeat {{}} }}"
    text = f"{chooser} stage {{ choose_from_datasets {{ {inputs(chains)} }} }}"
    dataset = Dataset.choose_from_datasets(
        [chain.dataset for chain in chains], Dataset.from_tensor_slices(tf.constant(pattern, tf.int64)).repeat()
    )
    return Chain(text, dataset, chains[0].names)


def case(name, chain):
    elements = [{key: int(value) for key, value in element.items()} for element in chain.dataset.as_numpy_iterator()]
    assert elements and len(elements) < 200, (name, len(elements))
    draws = {}
    for key in chain.names:
        if key in ("v", "second_v"):
            continue
        known = {}
        draws[key] = [known.setdefault(element[key], len(known)) for element in elements]
    cases.append({"name": name, "spec": chain.text, "v": [element["v"] for element in elements], "draws": draws})


def nested_cases():
    three = lambda inside: inside.repeat(3)
    case("repeat in flat_map", numbers(4).draw("a").flat_map(three).draw("b"))
    case("repeat in flat_map, twice", numbers(3).draw("a").flat_map(three).draw("b").repeat(2))
    case("repeat in flat_map, behind a repeat", numbers(3).draw("a").repeat(2).flat_map(three).draw("b"))
    case("repeat in flat_map, between repeats", numbers(3).draw("a").repeat(2).flat_map(three).draw("b").repeat(2))
    case("repeat in interleave", numbers(5).draw("a").interleave(three, 2, 2).draw("b"))
    case("draws inside, on both sides", numbers(3).draw("a").flat_map(lambda x: x.draw("c").repeat(2).draw("d")).draw("b"))
    case("draws inside, in front of a filter", numbers(3).draw("a").flat_map(lambda x: x.draw("c").all().repeat(2).draw("d")).draw("b"))
    case("draws inside, behind a filter", numbers(3).draw("a").flat_map(lambda x: x.repeat(2).draw("c").all().draw("d")).draw("b"))
    case("two repeats inside", numbers(2).draw("a").flat_map(lambda x: x.draw("c").repeat(2).draw("d").repeat(3)).draw("b"))
    case("a repeat of one pass behind another one", numbers(2).draw("a").flat_map(lambda x: x.draw("c").repeat(2).repeat(1)).draw("b"))
    case("take of an endless repeat", numbers(3).draw("a").flat_map(lambda x: x.repeat().take(4)).draw("b"))
    case("flat_map in flat_map", numbers(2).draw("a").flat_map(lambda x: x.repeat(2).draw("c").flat_map(lambda y: y.repeat(2).draw("d"))).draw("b"))
    case("flat_map in flat_map, repeated", numbers(2).draw("a").flat_map(lambda x: x.draw("c").flat_map(lambda y: y.draw("d").repeat(2)).repeat(2)).draw("b"))
    case("filters in flat_map in flat_map", numbers(2).draw("a").flat_map(lambda x: x.draw("c").all().flat_map(lambda y: y.draw("d").all().repeat(2)).repeat(2)).draw("b"))
    case("flat_map behind flat_map", numbers(2).draw("a").flat_map(lambda x: x.repeat(2)).draw("c").flat_map(lambda x: x.repeat(2)).draw("b"))
    case("numbers for each element", numbers(3).draw("a").flat_map(lambda _: numbers(2).draw("c")).draw("b"))
    case("numbers for each element, filtered", numbers(3).draw("a").flat_map(lambda _: numbers(2).draw("c").all().draw("d")).draw("b"))
    case("numbers for each element, in turns", numbers(3).draw("a").interleave(lambda _: numbers(2).draw("c"), 2, 1).draw("b"))
    case("numbers for each number for each element", numbers(2).flat_map(lambda _: numbers(2).draw("c").flat_map(lambda _: numbers(2).draw("d"))).draw("b"))
    case("numbers beside the element", numbers(3).draw("a").flat_map(lambda x: with_element(numbers(2).draw("c"), x.draw("e")).draw("d")).draw("b"))
    case("numbers beside the element, repeated", numbers(3).draw("a").flat_map(lambda x: with_element(numbers(2).draw("c"), x.draw("e")).draw("d").repeat(2)).draw("b"))
    case("one after another in flat_map", numbers(2).draw("a").flat_map(lambda x: x.draw("c").repeat(2).skip(1).take(2)).draw("b"))
    case("a cache behind flat_map", numbers(3).draw("a").flat_map(three).draw("b").cache().repeat(2).draw("d"))
    case("a filter behind flat_map", numbers(3).draw("a").flat_map(three).draw("b").all().draw("d").repeat(2))
    case("scan behind flat_map", numbers(3).draw("a").flat_map(three).scan().draw("b"))
    case("batches that are repeated", numbers(4).draw("a").batch(2).flat_map(lambda x: x.repeat(2)).unbatch().draw("b"))
    case("batches in flat_map", numbers(2).draw("a").flat_map(lambda x: x.repeat(4).batch(2)).unbatch().draw("b"))


def window_cases():
    same = lambda window: window.take(100)
    case("windows that overlap", numbers(6).draw("a").window(3, 1, same).draw("b"))
    case("windows that overlap, draws inside", numbers(6).draw("a").window(3, 2, lambda window: window.draw("c")).draw("b").repeat(2))
    case("windows that overlap, filtered inside", numbers(6).draw("a").window(3, 2, lambda window: window.draw("c").all().draw("d")).draw("b"))
    case("windows that overlap, of what is read only", numbers(6).window(3, 1, same).draw("b"))
    case("windows of windows", numbers(5).draw("a").window(3, 1, lambda window: window.window(2, 1, same)).draw("b"))
    case("windows apart", numbers(6).draw("a").window(2, 2, same).draw("b"))
    case("windows apart, repeated", numbers(6).draw("a").window(2, 2, lambda window: window.draw("c").repeat(2)).draw("b"))
    case("windows across passes", numbers(3).draw("a").repeat(4).window(2, 2, same).draw("b"))
    case("windows across passes that overlap", numbers(3).draw("a").repeat(2).window(4, 1, same).draw("b"))
    case("windows across passes behind a filter", numbers(3).draw("a").all().repeat(2).window(6, 6, same).draw("b"))
    case("batches of windows", numbers(5).draw("a").window(2, 1, lambda window: window.batch(2)).unbatch().draw("b"))
    case("groups", numbers(8).draw("a").group(2, same).draw("b").repeat(2))
    case("groups, repeated", numbers(8).draw("a").group(2, lambda window: window.draw("c").repeat(2)).draw("b"))
    case("groups across passes", numbers(3).draw("a").repeat(4).group(3, lambda window: window.repeat(2)).draw("b"))


def order_cases():
    case("repeat", numbers(3).draw("a").repeat(3).draw("b"))
    case("repeat of a repeat", numbers(3).draw("a").repeat(2).draw("c").repeat(2).draw("b"))
    case("repeat of a repeat, and shuffled", numbers(3).draw("a").repeat(2).shuffle_of_one().draw("c").repeat(2).draw("b"))
    case("repeat of a repeat of a repeat", numbers(2).draw("a").repeat(2).repeat(2).draw("c").repeat(2).draw("b"))
    case("a repeat of one pass", numbers(3).draw("a").repeat(2).repeat(1).draw("b"))
    case("what is taken of an endless repeat", numbers(3).draw("a").repeat().take(7).draw("c").repeat(2).draw("b"))
    case("a filter between repeats", numbers(3).draw("a").repeat(2).draw("c").all().draw("d").repeat(2).draw("b"))
    case("cache", numbers(3).draw("a").cache().draw("c").repeat(2).draw("b"))
    case("cache between repeats", numbers(3).draw("a").repeat(2).draw("c").cache().draw("d").repeat(2).draw("b"))
    case("rows that are the same", numbers(3).draw("a").doubled().unbatch().draw("b"))
    case("rows that are the same, through scan", numbers(3).draw("a").doubled().unbatch().scan().draw("b"))
    case("rows that are the same, through two scans", numbers(3).draw("a").doubled().unbatch().scan().draw("c").scan().draw("b"))
    case("one after another", concatenated(numbers(3).draw("a"), numbers(3).draw("a")).draw("b"))
    case("one after another, one of them repeated", concatenated(numbers(3).draw("a"), numbers(2).draw("a").repeat(3)).draw("b").repeat(2))
    case("side by side", zipped(numbers(3).draw("a"), numbers(3).draw("a")).draw("b"))
    case("side by side, one of them repeated", zipped(numbers(5).draw("a"), numbers(2).draw("a").repeat()).draw("b").repeat(2))
    case("side by side, both repeated", zipped(numbers(2).draw("a").repeat(), numbers(2).draw("a").repeat(3)).draw("b").repeat(2))
    case("a rare class comes often", chosen([0, 1, 1], numbers(6).draw("a"), numbers(2, 100).draw("a").repeat()).draw("b"))
    case("a rare class comes often, in each epoch", chosen([0, 1, 1], numbers(4).draw("a"), numbers(2, 100).draw("a").repeat()).draw("b").repeat(2))
    case("a rare class is multiplied", concatenated(numbers(4).draw("a"), numbers(2, 100).draw("a").flat_map(lambda x: x.repeat(3))).draw("b").repeat(2))


nested_cases()
window_cases()
order_cases()
path = pathlib.Path(__file__).with_name("copies.json")
path.write_text('{"cases": [\n' + ",\n".join(json.dumps(one) for one in cases) + "\n]}\n")
print(len(cases), "cases")
