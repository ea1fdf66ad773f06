"""The fixtures of these tests; what makes them is in machine.py, which tests import from.

They are collected only where `./dev test service` has made what they install.
"""

import os

from machine import root  # noqa: F401

collect_ignore_glob = [] if "PENSTOCK_DEB" in os.environ else ["test_*.py"]
