"""Checks that an installation reads files at addresses: over HTTP, over HTTPS, and as an object of S3 with a signature.

    python read_addresses.py CERTIFICATE KEY

A server that nobody vouches for is refused first, in a process that this program starts as `read_addresses.py --rows ADDRESS`.
Both are of `localhost`, in PEM. Everything is served by this program, so that no network is needed beyond the loopback; the Python that runs this
must find the `penstock` package.
"""

import http.server
import os
import re
import ssl
import subprocess
import sys
import tempfile
import threading

import numpy as np

import penstock

ROWS = 500


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        data, tag = self.server.data, '"1"'
        if self.path.startswith("/bucket/") and not self.headers.get("Authorization", "").startswith("AWS4-HMAC-SHA256 Credential=known/"):
            return self.answer(403, b"")
        if not self.path.endswith("/rows"):
            return self.answer(404, b"")
        if self.command == "HEAD":
            return self.answer(200, data, ("ETag", tag))
        first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
        if first >= len(data):
            return self.answer(416, b"", ("Content-Range", f"bytes */{len(data)}"))
        last = min(last, len(data) - 1)
        self.answer(206, data[first:last + 1], ("ETag", tag), ("Content-Range", f"bytes {first}-{last}/{len(data)}"))

    def answer(self, status, body, *headers):
        self.send_response(status)
        for name, value in (("Content-Length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, data, context=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.data = data
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # a client that does not trust the certificate


def rows(address):
    return [bytes(row) for batch in penstock.TFRecordDataset(address).batch(64) for row in np.asarray(batch)]


def main(certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows")
        with penstock.io.TFRecordWriter(path) as writer:
            for i in range(ROWS):
                writer.write(b"row %d" % i * (1 + i % 100))
        with open(path, "rb") as file:
            data = file.read()
        plain, secret = Server(data), Server(data, context)
        # A private daemon takes these when it starts; another process has one of its own.
        os.environ.pop("SSL_CERT_FILE", None)
        distrusting = subprocess.run([sys.executable, __file__, "--rows", f"https://localhost:{secret.server_address[1]}/rows"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60)
        assert distrusting.returncode and "certificate does not hold" in distrusting.stderr, distrusting.stderr
        os.environ.update(SSL_CERT_FILE=os.path.abspath(certificate), AWS_ACCESS_KEY_ID="known", AWS_SECRET_ACCESS_KEY="secret",
                          AWS_REGION="us-east-1", AWS_ENDPOINT_URL_S3=f"https://localhost:{secret.server_address[1]}")
        expected = rows(path)
        assert len(expected) == ROWS, len(expected)
        for address in (f"http://127.0.0.1:{plain.server_address[1]}/rows", f"https://localhost:{secret.server_address[1]}/rows", "s3://bucket/rows"):
            assert rows(address) == expected, address
            print("read", address.split(":")[0], len(expected), "rows")


if __name__ == "__main__":
    if sys.argv[1] == "--rows":
        rows(sys.argv[2])
    else:
        main(*sys.argv[1:])
