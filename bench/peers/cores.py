"""How far the processors' caches lie apart while figures are taken."""

import json
import statistics
import subprocess

from daemon import BIN


class Cores:
    """Looked at before each turn: what shares memory between threads depends on it, and a virtual machine's host changes it at any time."""

    def __init__(self):
        self.one_way_ns = []

    def look(self):
        done = subprocess.run([BIN / "bench_core_distance"], check=True, capture_output=True, text=True, timeout=60)
        self.one_way_ns.append(json.loads(done.stdout)["one_way_ns"])

    def fields(self):
        """What a line of JSON says of it: the median and the most, in ns from one processor to the other."""
        return {"cores_ns": round(statistics.median(self.one_way_ns)), "cores_ns_max": round(max(self.one_way_ns))}
