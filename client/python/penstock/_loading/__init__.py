"""penstock.torch.DataLoader: torch's, over Penstock's worker processes.

_loader has the class, _iterators the loops over it, _indices the samplers and how they go on, _parcel what the workers get, _worker what runs in them, and
_payload how a batch comes back.
"""
