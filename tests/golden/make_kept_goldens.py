"""Writes kept.json: chains of the ops that keep elements (cache, snapshot, save, load), and what tf.data makes of each.

Run by hand, with a Python that has TensorFlow:  python tests/golden/make_kept_goldens.py

Cases are built and written as in make_order_goldens.py. Those that name the same folder follow each other: what one has kept, the next one
takes.
"""

import json
import pathlib
import random

import tensorflow as tf

import make_order_goldens as order
from make_order_goldens import FOLDER, PLACE, Chain, case, numbers, stage

Dataset = tf.data.Dataset


def cache(chain, folder=None):
    """TensorFlow's own cache belongs to one place in one program: it gets a name of its own each time."""
    cache.uses += 1
    filename = str(FOLDER / f"cache-{cache.uses}") if folder else ""
    text = stage("cache", filename=f"{PLACE}{folder}" if folder else None)
    return chain.then(text, chain.dataset.cache(filename))


cache.uses = 0


def snapshot(chain, folder):
    return chain.then(stage("snapshot", path=f"{PLACE}{folder}"), chain.dataset.snapshot(str(FOLDER / folder)))


def saved(name, chain, batched=False):
    """A case that saves, and one that loads what TensorFlow has saved, too."""
    folder = f"saved-{name.replace(' ', '-')}"
    case(f"save: {name}", chain.then(stage("save", path=f"{PLACE}{folder}"), chain.dataset), batched=batched)
    chain.dataset.save(str(FOLDER / folder))
    loaded = Chain(stage("load", path=f"{PLACE}{folder}"), Dataset.load(str(FOLDER / folder)))
    case(f"load: {name}", loaded, batched=batched)
    return loaded


def sources():
    """A name, a chain, and whether its steps are batches: what is kept is an element, whatever it was."""
    yield "numbers", numbers(7), False
    yield "none", numbers(0), False
    yield "pairs", numbers(5).enumerate(3), False
    yield "nested pairs", numbers(5).enumerate(3).enumerate(), False
    yield "filtered", numbers(20).filter("value % 3 != 0", lambda x: x % 3 != 0), False
    yield "batches", numbers(7).batch(3), False


def keeping_cases():
    for name, chain, batched in sources():
        for folder in (None, f"kept-{name.replace(' ', '-')}"):
            where = "in a file" if folder else "in memory"
            for round_number in range(2 if folder else 1):
                what = f"cache {where}, {name}, {round_number}"
                case(what, cache(chain, folder), batched=batched)
                case(f"{what}, repeat", cache(chain, folder).repeat(3), batched=batched)
                case(f"{what}, skip repeat", cache(chain, folder).skip(2).repeat(2), batched=batched)
                case(f"{what}, repeat take", cache(chain, folder).repeat(3).take(8), batched=batched)
                case(f"{what}, shard repeat", cache(chain, folder).shard(2, 1).repeat(2), batched=batched)
        case(f"cache of a cache, {name}", cache(cache(chain, "inner"), "outer").repeat(2), batched=batched)
        case(f"repeat in front of a cache, {name}", cache(chain.repeat(2), "repeated").repeat(2), batched=batched)
        case(f"snapshot, {name}", snapshot(chain, f"snapshot-{name.replace(' ', '-')}").repeat(2), batched=batched)
        case(f"snapshot again, {name}", snapshot(chain, f"snapshot-{name.replace(' ', '-')}").skip(1), batched=batched)
        loaded = saved(name, chain, batched)
        case(f"load repeat skip, {name}", loaded.repeat(3).skip(4), batched=batched)
        case(f"load shard, {name}", loaded.shard(2, 1), batched=batched)
        case(f"load cache, {name}", cache(loaded, "loaded").repeat(2), batched=batched)


def random_chains():
    dice = random.Random(5)
    for number in range(60):
        chain = numbers(dice.randint(0, 15))
        kept = 0
        for _ in range(dice.randint(2, 5)):
            kind = dice.randint(0, 6)
            if kind == 0:
                chain = chain.take(dice.randint(0, 12))
            elif kind == 1:
                chain = chain.skip(dice.randint(0, 5))
            elif kind == 2:
                chain = chain.repeat(dice.randint(0, 3))
            elif kind == 3:
                chain = chain.shard(2, dice.randint(0, 1))
            elif kind == 4:
                chain = chain.enumerate(dice.randint(0, 4))
            else:
                chain = cache(chain, dice.choice([None, f"chain-{dice.randint(0, 3)}"]))
                kept += 1
        case(f"random chain {number}, {kept} caches", chain)


def main():
    keeping_cases()
    random_chains()
    document = {"tensorflow": tf.__version__, "files": order.files}
    lines_of_cases = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in order.cases)
    head = json.dumps(document, separators=(",", ":"))[:-1]
    path = pathlib.Path(__file__).with_name("kept.json")
    path.write_text(f'{head},\n"cases":[\n{lines_of_cases}\n]}}\n')
    print(len(order.cases), "cases,", path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
