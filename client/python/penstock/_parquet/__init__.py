"""Parquet files (Dataset.parquet), by pyarrow, which is imported where it is used.

_files finds files and reads their footers, in the process that makes the dataset; _predicates decides by the statistics of a row group. _types says what
a column is as tensors, _columns makes these of arrays, and _row_groups reads row groups, in worker processes.
"""
