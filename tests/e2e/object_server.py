"""A server of objects by HTTP, and by as much of S3's protocol as a reader needs; it does as a test tells it."""

import hashlib
import http.server
import re
import threading
import urllib.parse


class ObjectServer(http.server.ThreadingHTTPServer):
    """`objects`: bytes by path ("/bucket/key"). `ranges`: what was asked for, but for the looks at one byte. `paths`: of all requests.
    `refuses`: answer all with 403.

    `hang()` holds all requests for ranges until `go_on()`.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, objects):
        self.objects = objects
        self.ranges = []
        self.heads = []
        self.paths = []
        self.refuses = False
        self._may_answer = threading.Event()
        self._may_answer.set()
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def hang(self):
        self._may_answer.clear()

    def go_on(self):
        self._may_answer.set()

    def wait_until_allowed(self):
        self._may_answer.wait()

    def end(self):
        self.go_on()
        self.shutdown()
        self.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def handle(self):
        try:
            super().handle()
        except (BrokenPipeError, ConnectionResetError):
            pass

    def _answer(self, status, body=b"", **headers):
        self.send_response(status)
        self.send_header("Content-Length", headers.pop("length", str(len(body))))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        server = self.server
        server.heads.append(str(self.headers))
        server.paths.append(self.path)
        if server.refuses:
            return self._answer(403, b"<Error><Code>AccessDenied</Code></Error>")
        path, _, query = self.path.partition("?")
        path = urllib.parse.unquote(path)
        if "list-type=2" in query:
            return self._list(path.strip("/"), dict(urllib.parse.parse_qsl(query, keep_blank_values=True)).get("prefix", ""))
        data = server.objects.get(path)
        if data is None:
            return self._answer(404)
        tag = '"' + hashlib.md5(data).hexdigest() + '"'
        if self.headers.get("If-Match", tag) != tag:
            return self._answer(412)
        if self.command == "HEAD":
            return self._answer(200, ETag=tag, length=str(len(data)))
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        first, last = map(int, wanted.groups()) if wanted else (0, len(data) - 1)
        if first >= len(data):
            return self._answer(416, Content_Range=f"bytes */{len(data)}")
        if (first, last) != (0, 0):
            server.ranges.append((path, first, last))
            server.wait_until_allowed()
        last = min(last, len(data) - 1)
        self._answer(206, data[first : last + 1], ETag=tag, Content_Range=f"bytes {first}-{last}/{len(data)}")

    do_HEAD = do_GET

    def _list(self, bucket, prefix):
        keys = sorted(path.removeprefix(f"/{bucket}/") for path in self.server.objects if path.startswith(f"/{bucket}/{prefix}"))
        entries = "".join(
            f"<Contents><Key>{urllib.parse.quote(key)}</Key><Size>{len(self.server.objects[f'/{bucket}/{key}'])}</Size>"
            f"<ETag>&quot;{hashlib.md5(self.server.objects[f'/{bucket}/{key}']).hexdigest()}&quot;</ETag></Contents>"
            for key in keys
        )
        self._answer(200, f"<ListBucketResult><EncodingType>url</EncodingType>{entries}</ListBucketResult>".encode())
