"""One host of test_changes.py, which says on its input what it is to do, a line of JSON each, and hears what came of it.

    python changing_worker.py HOSTS HOST
"""

import json
import sys

import numpy as np

import penstock
from penstock._epochs import EpochLoader


def dataset():
    return penstock.Dataset.range(3000).shuffle(80, seed=7).filter(lambda x: x % 5 != 0).map(lambda x: {"n": x}).batch(12)


def main():
    loader = EpochLoader(dataset(), np.array, {"world": (int(sys.argv[1]), int(sys.argv[2])), "guard": None, "fewest_hosts": 2})
    batches = None
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["do"] == "resume":
            loader.load_state_dict(asked["state"])
            said = {}
        elif asked["do"] == "reworld":
            loader.reworld(asked["hosts"], asked["host"], at_step=asked["at_step"])
            said = {}
        else:
            batches = batches or iter(loader)
            rows = next(batches)["n"].tolist()
            said = {"rows": rows, "state": loader.state_dict(), "pipeline": loader._loader.pipeline}
        print(json.dumps(said, default=bytes.hex), flush=True)


if __name__ == "__main__":
    main()
