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
  }}
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    {tls}
    root {root};
    location = /counts {{ content_by_lua_block {{
      for _, name in ipairs({{"late", "stalled", "busy", "cut"}}) do ngx.say(name, " ", ngx.shared.counts:get(name) or 0) end
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
