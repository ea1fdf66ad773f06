"""These tests boot a kernel: `./dev test numa` unpacks it, and says where it is. Elsewhere nothing here is collected."""

import os

collect_ignore_glob = [] if "PENSTOCK_KERNEL" in os.environ else ["test_*.py"]
