"""Engines that train on several hosts. They run where the engine is: `./dev test hosts` makes that environment. Elsewhere, without torch or ray, what needs them is
not collected, and test_slurm.py skips itself."""

import importlib.util

collect_ignore = [
    name for name, package in (("test_torchrun.py", "torch"), ("test_many_hosts_page.py", "torch"), ("test_ray.py", "ray")) if importlib.util.find_spec(package) is None
]
