"""The rows of an Arrow Flight stream, for penstock.Dataset.from_source: whole record batches, without an object for each row. BigQuery's Storage API and other
services that answer in Arrow record batches are read in the same way.

    source = FlightBatches("grpc://127.0.0.1:8815", b"train", ["x", "y"])
    dataset = penstock.Dataset.from_source(source, output={"x": penstock.TensorSpec((), penstock.int64), "y": penstock.TensorSpec((), penstock.float64)})
"""

import penstock


class FlightBatches(penstock.io.Source):
    """Args: address: of the server; ticket: bytes; names: of columns of numbers."""

    # A ticket is answered from its beginning: a resume reads the batches in front again.
    seeks = False
    gives_rows = True

    def __init__(self, address, ticket, names):
        self.address, self.ticket, self.names = address, ticket, list(names)

    def read(self, position):
        from pyarrow import flight

        with flight.connect(self.address) as client:
            for chunk in client.do_get(flight.Ticket(self.ticket)):
                yield {name: chunk.data.column(name).to_numpy(zero_copy_only=False) for name in self.names}
