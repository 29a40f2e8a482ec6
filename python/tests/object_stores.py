"""Servers of files for tests: HTTP with faults, and moto's S3."""

import contextlib
import http.server
import json
import os
import ssl
import subprocess
import threading
import time
import urllib.parse
from typing import Callable, Dict, Iterator, List, Optional


class WebServer:
    """Serves a dict of files on localhost; attributes set what goes wrong.

    With `certificate`, the path of a key and a certificate for 127.0.0.1, by HTTPS.
    """

    def __init__(self, files: Dict[str, bytes], certificate: Optional[str] = None) -> None:
        self.files = files
        self.ranges = True  # whether requests for ranges are answered with them
        self.status: Optional[int] = None  # of every answer
        self.faults: List[Callable[[http.server.BaseHTTPRequestHandler], None]] = []  # instead of the next answers
        self.hang = threading.Event()  # set: requests get no answer
        self.pause = 0.0  # seconds between the eight parts that an answer is sent in
        self.tags: Dict[str, str] = {}  # ETags; none: no header
        self.requests: List[str] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                outer.answer(self)

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self.hang.clear()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        self.requests.append(f"{request.path} {request.headers.get('Range')}")
        while self.hang.is_set():
            time.sleep(0.02)
        if self.faults:
            self.faults.pop(0)(request)
            return
        content = self.files.get(urllib.parse.unquote(request.path.lstrip("/")))
        if self.status or content is None:
            send(request, self.status or 404, b"a page about the error")
            return
        headers = {}
        if request.path.lstrip("/") in self.tags:
            headers["ETag"] = self.tags[request.path.lstrip("/")]
        if self.ranges:
            self.send_part(request, content, headers)
        else:
            send(request, 200, content, headers)

    def send_part(self, request: http.server.BaseHTTPRequestHandler, content: bytes, headers: Dict[str, str]) -> None:
        """The range that the request asks for, or all."""
        asked = request.headers.get("Range")
        if not asked:
            send(request, 200, content, headers)
            return
        first, last = (int(number or len(content) - 1) for number in asked[len("bytes="):].split("-"))
        if first >= len(content):
            send(request, 416, b"", {**headers, "Content-Range": f"bytes */{len(content)}"})
            return
        part = content[first:last + 1]
        send(request, 206, part, {**headers, "Content-Range": f"bytes {first}-{first + len(part) - 1}/{len(content)}"},
             self.pause)


class GoogleStore(WebServer):
    """A bucket of Google Cloud Storage: as much of the JSON API as reading needs."""

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        self.requests.append(request.path)
        url = urllib.parse.urlsplit(request.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        objects = "/storage/v1/b/bucket/o"
        name = urllib.parse.unquote(url.path[len(objects) + 1:])
        if self.faults:
            self.faults.pop(0)(request)
        elif url.path == objects:
            found = [self.describe(key) for key in self.files if key.startswith(query.get("prefix", ""))]
            self.send_json(request, 200, {"kind": "storage#objects", "items": found})
        elif self.status or not url.path.startswith(objects + "/") or name not in self.files:
            self.send_json(request, self.status or 404, {"error": {"code": self.status or 404, "message": "no object"}})
        elif query.get("alt") != "media":
            self.send_json(request, 200, self.describe(name))
        elif query.get("generation", self.generation(name)) != self.generation(name):
            self.send_json(request, 404, {"error": {"code": 404, "message": "no such generation"}})
        else:
            self.send_part(request, self.files[name], {"x-goog-generation": self.generation(name)})

    def generation(self, name: str) -> str:
        return self.tags.get(name, "1")

    def describe(self, name: str) -> Dict[str, object]:
        return {"kind": "storage#object", "bucket": "bucket", "name": name, "size": str(len(self.files[name])),
                "generation": self.generation(name), "metageneration": "1", "updated": "2026-01-01T00:00:00Z"}

    @staticmethod
    def send_json(request: http.server.BaseHTTPRequestHandler, status: int, content: object) -> None:
        send(request, status, json.dumps(content).encode(), {"Content-Type": "application/json"})


def make_certificate(path: str, address: str = "127.0.0.1") -> str:
    """A file with a new key and a certificate for it, which it signs itself."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=test", "-addext", f"subjectAltName=IP:{address}", "-keyout", path,
                    "-out", path + ".crt"], check=True, capture_output=True, timeout=60)
    with open(path, "a") as both, open(path + ".crt") as certificate:
        both.write(certificate.read())
    return path


def send(request: http.server.BaseHTTPRequestHandler, status: int, content: bytes,
         headers: Optional[Dict[str, str]] = None, pause: float = 0) -> None:
    with contextlib.suppress(ConnectionError):  # the client had enough
        request.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            request.send_header(name, value)
        request.end_headers()
        step = -(-len(content) // 8) if pause else len(content)
        for begin in range(0, len(content), max(step, 1)):
            request.wfile.write(content[begin:begin + step])
            time.sleep(pause)


def cut_connection(request: http.server.BaseHTTPRequestHandler) -> None:
    """Promises content and sends none."""
    request.send_response(206)
    request.send_header("Content-Length", "1000")
    request.send_header("Content-Range", "bytes 0-999/100000")
    request.end_headers()
    request.close_connection = True


def overloaded(request: http.server.BaseHTTPRequestHandler) -> None:
    send(request, 503, b"later")


def files_of(folder: str, prefix: str = "") -> Dict[str, bytes]:
    """The files below a folder, by their paths in it."""
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            with open(path, "rb") as file:
                found[prefix + os.path.relpath(path, folder)] = file.read()
    return found


@contextlib.contextmanager
def s3_server() -> Iterator[str]:
    """The URL of moto's server."""
    from moto.server import ThreadedMotoServer
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()
