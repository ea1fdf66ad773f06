"""NumPy on traced values: its operators, subscripts, methods and functions, by subject.

A stand-in asks here for what NumPy hands to it. What has to be imported for that waits until the first traced function (kinds_test.py).
"""
