"""Puts files into a bucket of an S3 server, by Arrow's client.

    python put_objects.py URL_OF_THE_SERVER KEY SECRET BUCKET FILE…
"""

import pathlib
import sys
import urllib.parse

from pyarrow import fs


def main():
    server, key, secret, bucket, *files = sys.argv[1:]
    url = urllib.parse.urlparse(server)
    store = fs.S3FileSystem(access_key=key, secret_key=secret, scheme=url.scheme, endpoint_override=url.netloc, region="us-east-1",
                            allow_bucket_creation=True)
    store.create_dir(bucket)
    for file in map(pathlib.Path, files):
        with store.open_output_stream(f"{bucket}/{file.name}") as out:
            out.write(file.read_bytes())


main()
