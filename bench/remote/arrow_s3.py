"""Arrow's S3 client on the same objects: ranges of 8 MiB, several files' at a time, forgotten as they come. One JSON line, as of bench/loop_fetch.cc.

    python arrow_s3.py URL_OF_THE_SERVER AUTHORITIES|- BLOCK_BYTES IN_FLIGHT BUCKET/KEY…
"""

import concurrent.futures
import json
import resource
import sys
import time
import urllib.parse

import pyarrow
from pyarrow import fs


def main():
    server, authorities, block, in_flight, *objects = sys.argv[1:]
    url = urllib.parse.urlparse(server)
    pyarrow.set_io_thread_count(int(in_flight))
    more = {} if authorities == "-" else {"tls_ca_file_path": authorities}
    store = fs.S3FileSystem(anonymous=True, scheme=url.scheme, endpoint_override=url.netloc, region="us-east-1", **more)
    files = [store.open_input_file(name) for name in objects]
    begin = time.monotonic()
    ranges = [(file, at) for at in range(0, max(file.size() for file in files), int(block)) for file in files if at < file.size()]

    def read(one):
        file, at = one
        return file.read_at(int(block), at) and min(int(block), file.size() - at)

    with concurrent.futures.ThreadPoolExecutor(int(in_flight)) as several:
        bytes_ = sum(several.map(read, ranges))
    seconds = time.monotonic() - begin
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"bytes": bytes_, "seconds": seconds, "cpu_seconds": used.ru_utime + used.ru_stime}))


main()
