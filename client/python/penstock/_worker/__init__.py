"""The process that computes the rows of a Python function for penstockd (server/python/README.md).

_start is what it is started with, and _process its loop; _sheets computes a sheet. _function reads the function's file; _trays, _features and _arguments have what it is called with, _results and _outputs what
becomes of what it returns; _package keeps the rest of the package out; _iterables and _elements are for iterables, _describing for those who want to know what a function returns, and _seeds for the global random generators.

Nothing here imports more of the package than _row and _structure, and of other packages only NumPy: a process is there in a tenth of a second, and the rest is what the function needs.
"""
