"""What runs a pipeline from Python: the private daemon, shared daemons, and the iterator of a pass.

Datasets come in, and whatever asks the daemon. Nothing here makes stages or traces functions.
"""
