"""The site's tests run where MkDocs is: `./dev test docs` makes that environment. Elsewhere nothing here is collected."""

import importlib.util

collect_ignore = [] if importlib.util.find_spec("mkdocs") else ["test_site.py"]
