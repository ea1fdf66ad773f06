"""The fixtures of these tests; what makes them is in machine.py, which tests import from.

They are collected only where `./dev test service` or `./dev test wheels` has made what they install.
"""

import os

from machine import root  # noqa: F401

_NEEDS = {"test_container.py": "PENSTOCK_DEB", "test_package.py": "PENSTOCK_DEB", "test_systemd.py": "PENSTOCK_DEB", "test_wheels.py": "PENSTOCK_WHEELHOUSE"}
collect_ignore = [name for name, variable in _NEEDS.items() if variable not in os.environ]
