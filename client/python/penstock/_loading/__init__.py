"""penstock.torch.DataLoader: torch's, over Penstock's worker processes.

_loader has the class, _iterators the loops over it, _position how far they have come, _state that as a text, and _indices the samplers and how they go on. _parcel is what the
workers get; _worker and _stream run in them, _stacking stacks rows as they come, and _iterables has the states of iterables. _payload is how a batch comes
back, and _outlines how the next ones do.
"""
