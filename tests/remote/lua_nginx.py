"""nginx with Lua: files of a folder after a latency, cut, stalled, refused, redirected. Debian packages: nginx, libnginx-mod-http-lua."""

import pathlib
import shutil
import socket
import subprocess
import time

MODULES = pathlib.Path("/usr/lib/nginx/modules")

_CONFIGURATION = """
load_module {modules}/ndk_http_module.so;
load_module {modules}/ngx_http_lua_module.so;
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  sendfile on;
  tcp_nodelay on;
  keepalive_requests 1000000;
  lua_shared_dict counts 1m;
  init_by_lua_block {{
    -- How often a place was asked for.
    function count(name) return ngx.shared.counts:incr(name, 1, 0) end
    local file = io.open("{root}/part-0", "rb")
    one_of_many = file and file:read(65536) or ""
    if file then file:close() end
  }}
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    {tls}
    root {root};
    location = /counts {{ content_by_lua_block {{
      for _, name in ipairs({{"late", "stalled", "busy", "cut", "lists", "many"}}) do ngx.say(name, " ", ngx.shared.counts:get(name) or 0) end
    }} }}
    location /near/ {{ alias {root}/; }}
    # {latency_ms} ms to the first byte, {rate} a connection.
    location /late/ {{
      limit_rate {rate};
      rewrite_by_lua_block {{ count("late"); ngx.sleep({latency_ms} / 1000) }}
      alias {root}/;
    }}
    # One in twenty takes two seconds longer.
    location /stalled/ {{
      limit_rate {rate};
      rewrite_by_lua_block {{ ngx.sleep(({latency_ms} + (count("stalled") % 20 == 0 and 2000 or 0)) / 1000) }}
      alias {root}/;
    }}
    # Three in ten are too much.
    location /busy/ {{
      rewrite_by_lua_block {{
        if count("busy") % 10 < 3 then ngx.status = 503; ngx.print("<Error><Code>SlowDown</Code></Error>"); return ngx.exit(503) end
      }}
      alias {root}/;
    }}
    # Every third answer ends in its middle.
    location /cut/ {{
      alias {root}/;
      sendfile off;
      output_buffers 1 32k;
      header_filter_by_lua_block {{ ngx.ctx.cut = count("cut") % 3 == 0; ngx.ctx.pieces = 0 }}
      body_filter_by_lua_block {{
        ngx.ctx.pieces = ngx.ctx.pieces + 1
        if ngx.ctx.cut and ngx.ctx.pieces > 3 then return ngx.ERROR end
      }}
    }}
    # As S3: a bucket of 10,000 objects, each of them the beginning of part-0, {latency_ms} ms to each answer.
    location /many {{ content_by_lua_block {{
      ngx.sleep({latency_ms} / 1000)
      local asked = ngx.req.get_uri_args()
      if asked["list-type"] then
        count("lists")
        local first = tonumber(asked["continuation-token"] or "0")
        local body = {{"<ListBucketResult>"}}
        for i = first, first + 999 do
          body[#body + 1] = string.format("<Contents><Key>part-%05d</Key><Size>%d</Size><ETag>&quot;one&quot;</ETag></Contents>", i, #one_of_many)
        end
        if first + 1000 < 10000 then
          body[#body + 1] = "<IsTruncated>true</IsTruncated><NextContinuationToken>" .. first + 1000 .. "</NextContinuationToken>"
        end
        return ngx.print(table.concat(body), "</ListBucketResult>")
      end
      count("many")
      if not ngx.var.uri:find("^/many/part%-%d%d%d%d%d$") then return ngx.exit(404) end
      ngx.header["ETag"] = '"one"'
      local first, last = (ngx.var.http_range or ""):match("^bytes=(%d+)%-(%d+)$")
      if not first then return ngx.print(one_of_many) end
      last = math.min(tonumber(last), #one_of_many - 1)
      ngx.status = 206
      ngx.header["Content-Range"] = "bytes " .. first .. "-" .. last .. "/" .. #one_of_many
      ngx.print(one_of_many:sub(first + 1, last + 1))
    }} }}
    location /whole/ {{ max_ranges 0; alias {root}/; }}
    location /gzip/ {{ alias {root}/; header_filter_by_lua_block {{ ngx.header["Content-Encoding"] = "gzip" }} }}
    location /untagged/ {{ etag off; alias {root}/; }}
    location /elsewhere/ {{ return 302 http://169.254.169.254/latest/meta-data; }}
    location /forbidden/ {{ return 403; }}
    location /old/ {{ keepalive_timeout 0; alias {root}/; }}
  }}
}}
"""


def is_installed():
    return shutil.which("nginx") is not None and (MODULES / "ngx_http_lua_module.so").exists()


class LuaNginx:
    """Serves `root`. `rate`: bytes a second of each connection, as nginx writes it. `certificate`: (PEM, key) for TLS."""

    def __init__(self, folder, root, latency_ms=50, rate="90m", certificate=None, name="127.0.0.1"):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        tls = f"ssl_certificate {certificate[0]}; ssl_certificate_key {certificate[1]};" if certificate else ""
        listen = f"{port} ssl" if certificate else port
        text = _CONFIGURATION.format(modules=MODULES, folder=folder, root=root, port=listen, tls=tls, latency_ms=latency_ms, rate=rate)
        (folder / "nginx.conf").write_text(text)
        self.url = f"{'https' if certificate else 'http'}://{name}:{port}"
        self._process = subprocess.Popen(["nginx", "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")])
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
                return
            except OSError:
                assert self._process.poll() is None and time.monotonic() < end, (folder / "error.log").read_text()
                time.sleep(0.05)

    def end(self):
        self._process.terminate()
        self._process.wait()
