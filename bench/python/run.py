"""Python in worker processes, beside its peers: `./dev bench python [--quick] [--cases A,B] [--peers A,B] [--workers 1,2]`.

One line of JSON a case, peer and number of workers; README.md says how to read it. Everything else goes to stderr.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1] / "peers"))

from cases import ALL_PEERS, OTHER_CASES, RATE_CASES
from cores import Cores
from sides import NAMES, Sides
from turns import by_turns, log, median, over, ratios, spread


class Bench:
    def __init__(self, arguments):
        pythons = {"torch": arguments.torch_python, "grain": arguments.grain_python, "tensorflow": arguments.tf_python}
        self.runs = 1 if arguments.quick else arguments.runs
        self.sides = Sides(pythons, 1.0 if arguments.quick else arguments.seconds)
        self.array_bytes = 128 << 20 if arguments.quick else 1 << 30
        self.peers = arguments.peers
        self.failed = False
        self._rates = {}
        self._are_cores_busy = False

    def show(self, case, peer, workers, **fields):
        print(json.dumps({"case": case, "peer": peer, "workers": workers, **fields, "runs": self.runs}), flush=True)

    def turns(self, what, takes):
        results = by_turns(what, takes, self.runs)
        self.failed |= None in results.values()
        return results

    def chosen(self, *peers):
        """Those of the peers that are asked for; the loop always."""
        return [peer for peer in peers if peer == "loop" or peer in self.peers]

    # ---- rates and processor time ----

    def rates(self, case, workers):
        """All sides' results, and the fields of cores(); taken once."""
        if (case, workers) not in self._rates:
            function, batch, peers, ours = RATE_CASES[case]
            options = ("--function", function, "--batch", batch)
            takes = {"ours": lambda: self.sides.take(ours, "--workers", workers, *options)}
            for peer in self.chosen(*peers):
                takes[peer] = lambda peer=peer: self.sides.take(peer, "--workers", workers, *options)
            takes["loop"] = lambda: self.sides.loops(workers, *options)
            if workers > 1:
                takes["one loop"] = lambda: self.one_loop_times(workers, options)
            cores = self.cores()
            self._rates[case, workers] = self.turns(f"{case}, {workers} workers", takes), cores
        return self._rates[case, workers]

    def cores(self):
        """How far the processors' caches lie apart, as fields; none where both are too busy to tell."""
        if self._are_cores_busy:
            return {}
        cores = Cores()
        try:
            cores.look()
        except subprocess.TimeoutExpired:
            log("the processors are too busy to tell how far they lie apart; rates will say little")
            self._are_cores_busy = True
            return {}
        return cores.fields()

    def one_loop_times(self, workers, options):
        result = self.sides.loops(1, *options)
        return {**result, "examples_per_s": workers * result["examples_per_s"]}

    def rate_case(self, case, workers):
        results, cores = self.rates(case, workers)
        ours, loop = results["ours"], results["loop"]
        for peer, theirs in results.items():
            if peer == "ours" or not (ours and theirs):
                continue
            costs = {"cpu_us_over_loop": over(ours, loop), "theirs_cpu_us_over_loop": over(theirs, loop)} if loop else {}
            self.show(
                case, f"one loop, times {workers}" if peer == "one loop" else NAMES[peer], workers,
                ours=round(median(ours, "examples_per_s")), theirs=round(median(theirs, "examples_per_s")),
                **spread(ratios("examples_per_s", ours, theirs)),
                cpu_ratio=round(statistics.median(ratios("cpu_s_per_million", theirs, ours)), 3),
                ours_cpu_s_per_million=round(median(ours, "cpu_s_per_million"), 3),
                theirs_cpu_s_per_million=round(median(theirs, "cpu_s_per_million"), 3), **costs, **cores,
            )  # fmt: skip

    def trainer(self, workers):
        """The trainer's own processor time for a batch of `image`: its results are used again, where that case has run."""
        results, cores = self.rates("image", workers)
        batch = RATE_CASES["image"].batch
        for peer in self.chosen("torch", "grain", "tensorflow"):
            ours, theirs = results["ours"], results[peer]
            if ours and theirs:
                self.show(
                    "trainer", NAMES[peer], workers, ours=round(batch * median(ours, "trainer_cpu_s_per_million"), 2),
                    theirs=round(batch * median(theirs, "trainer_cpu_s_per_million"), 2),
                    **spread(ratios("trainer_cpu_s_per_million", ours, theirs)), **cores,
                )  # fmt: skip

    # ---- the others ----

    def first_batch(self, workers):
        """Seconds from the making of a loader to its first batch, of a function that imports nothing, and of a torch Dataset."""
        more = ("--what", "first_batch", "--workers", workers)
        sides = ["penstock", "drop_in", *self.chosen("torch", "grain", "tensorflow")]
        takes = {side: lambda side=side: self.sides.take(side, *more) for side in sides}
        takes["imports"] = lambda: {"seconds": self.sides.import_seconds("torch")}
        results = self.turns(f"first_batch, {workers} workers", takes)
        imports = results.pop("imports")
        functions, drop_in = results.pop("penstock"), results.pop("drop_in")
        for peer, theirs in results.items():
            self.seconds("first_batch", peer, functions, theirs, workers)
        if imports and results.get("torch"):
            imports_s = round(median(imports, "seconds"), 3)
            self.seconds("first_batch", "torch", drop_in, results["torch"], workers, drop_in=True, imports_s=imports_s)

    def resume(self, workers):
        """Seconds from the making of a loader, which is given a state, to the batch behind that: of a function beside Grain, and of a torch Dataset beside torchdata."""
        more = ("--what", "resume", "--workers", workers)
        pairs = {"grain": ("penstock", "grain"), "torch": ("drop_in", "torchdata")}
        pairs = [pairs[peer] for peer in self.chosen(*pairs)]
        takes = {side: lambda side=side: self.sides.take(side, *more) for pair in pairs for side in pair}
        takes["imports"] = lambda: {"seconds": self.sides.import_seconds("torch")}
        results = self.turns(f"resume, {workers} workers", takes)
        for ours, peer in pairs:
            fields = {"drop_in": True, "imports_s": round(median(results["imports"], "seconds"), 3)} if ours == "drop_in" and results["imports"] else {}
            self.seconds("resume", peer, results[ours], results[peer], workers, **fields)

    def seconds(self, case, peer, ours, theirs, workers, **fields):
        if ours and theirs:
            self.show(
                case, NAMES[peer], workers, ours=round(median(ours, "seconds"), 3), theirs=round(median(theirs, "seconds"), 3),
                **spread(ratios("seconds", ours, theirs)), **fields,
            )  # fmt: skip

    def closure(self, workers):
        """Memory of all processes for an array that the function holds, as a multiple of the array."""
        more = ("--what", "memory", "--workers", workers, "--array-bytes", self.array_bytes)
        takes = {side: lambda side=side: self.sides.take(side, *more) for side in ["penstock", *self.chosen("torch", "grain")]}
        results = self.turns(f"closure, {workers} workers", takes)
        ours = results.pop("penstock")
        for peer, theirs in results.items():
            if ours and theirs:
                self.show(
                    "closure", NAMES[peer], workers, ours=round(median(ours, "memory_bytes") / self.array_bytes, 3),
                    theirs=round(median(theirs, "memory_bytes") / self.array_bytes, 3), **spread(ratios("memory_bytes", ours, theirs)),
                    array_mib=self.array_bytes >> 20,
                )  # fmt: skip

    def seeds(self, workers):
        """What seeding costs: the peer is the same without."""
        for function, used in (("draws", "random, NumPy, torch"), ("small", "none")):
            options = ("--workers", workers, "--function", function)
            takes = {
                "ours": lambda options=options: self.sides.take("penstock", *options),
                "theirs": lambda options=options: self.sides.take("penstock", *options, "--no-seeds"),
            }
            ours, theirs = self.turns(f"seeds of {used}, {workers} workers", takes).values()
            if ours and theirs:
                self.show(
                    "seeds", "seeds=False", workers, generators=used, ours_cpu_s_per_million=round(median(ours, "cpu_s_per_million"), 3),
                    theirs_cpu_s_per_million=round(median(theirs, "cpu_s_per_million"), 3),
                    **spread(ratios("cpu_s_per_million", ours, theirs)), cpu_us_a_row=over(ours, theirs),
                )  # fmt: skip

    def run(self, case, workers):
        try:
            if case in RATE_CASES:
                self.rate_case(case, workers)
            else:
                getattr(self, case)(workers)
        except (OSError, subprocess.SubprocessError) as error:
            log(f"FAILED: {case}: {error}")
            self.failed = True


def words(text):
    return text.split(",")


def main():
    known = [*RATE_CASES, *OTHER_CASES]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch-python", required=True, help="a Python with torch, Pillow and cloudpickle, for Penstock and the loop, too")
    parser.add_argument("--grain-python", required=True, help="a Python with Grain and Pillow")
    parser.add_argument("--tf-python", required=True, help="a Python with TensorFlow and Pillow")
    parser.add_argument("--cases", type=words, default=known)
    parser.add_argument("--peers", type=words, default=list(ALL_PEERS), help="loop, torch, grain, tensorflow; the loop runs anyhow")
    parser.add_argument("--workers", type=lambda text: [int(word) for word in words(text)], default=[1, 2])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="the window's length")
    parser.add_argument("--quick", action="store_true", help="one run of one second, an array of 128 MiB")
    arguments = parser.parse_args()
    for what, given, there_are in (("case", arguments.cases, known), ("peer", arguments.peers, list(ALL_PEERS))):
        unknown = set(given) - set(there_are)
        if unknown:
            parser.error(f"no such {what}: {', '.join(sorted(unknown))}. There are: {', '.join(there_are)}")

    bench = Bench(arguments)
    for case in arguments.cases:
        for workers in arguments.workers:
            bench.run(case, workers)
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
