"""How a pipeline is written: its stages, their seeds and the text of a PipelineSpec, with the lines of the user's code that made them.

Everything that makes stages comes in. Nothing here knows datasets, traced values or the daemon.
"""
