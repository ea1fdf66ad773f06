"""Engines that train on several hosts. They run where the engine is: `./dev test hosts` makes that environment. Elsewhere, without torch, test_torchrun.py is not collected."""

import importlib.util

collect_ignore = [name for name, package in (("test_torchrun.py", "torch"),) if importlib.util.find_spec(package) is None]
