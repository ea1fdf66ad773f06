"""One process of an engine that numbers it: takes its rows by world="auto" and writes them down.

    python engine_worker.py FOLDER STEPS [STATE]
"""

import json
import pathlib
import sys

import numpy as np

import penstock
from penstock._epochs import EpochLoader


def dataset():
    return penstock.Dataset.range(500).shuffle(80, seed=7).map(lambda x: {"n": x}).batch(12)


def main():
    folder, steps = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    loader = EpochLoader(dataset(), np.array, {"world": "auto", "guard": None})
    if len(sys.argv) > 3:
        loader.load_state_dict(json.loads(pathlib.Path(sys.argv[3]).read_text()))
    rows = []
    for batch in loader:
        rows.append(batch["n"].tolist())
        if len(rows) == steps:
            break
    said = {"world": loader.world, "rows": rows, "state": loader.state_dict()}
    (folder / f"{loader.world.hosts}-{loader.world.host}.json").write_text(json.dumps(said, default=bytes.hex))
    loader.close()


if __name__ == "__main__":
    main()
