"""Hosts that train together, and hosts that help. Tests of engines run where the engine is: `./dev test hosts` makes that environment. Elsewhere, without torch or
ray, what needs them is not collected, and test_slurm.py skips itself. Tests of helpers run everywhere."""

import importlib.util
import pathlib
import sys

for _folder in ("e2e", "support"):
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / _folder))

_NEEDS = {
    "test_torchrun.py": ["torch"],
    "test_many_hosts_page.py": ["torch"],
    "test_ray.py": ["ray"],
    "test_ray_workers.py": ["ray"],
    "test_ray_train.py": ["ray", "torch", "pandas", "pyarrow"],
}
collect_ignore = [name for name, packages in _NEEDS.items() if any(importlib.util.find_spec(package) is None for package in packages)]
