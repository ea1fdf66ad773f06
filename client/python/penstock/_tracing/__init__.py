"""The graph that a function given to map becomes: stand-ins, nodes, calls of the expression language, and the stages that compute them.

The functions of NumPy (_numpy), the public modules and the datasets come in. Nothing here knows a dataset's class or NumPy's names.
"""
