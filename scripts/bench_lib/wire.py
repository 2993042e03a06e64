"""One connection that is kept open, and the time of each answer on it."""

import http.client
import io
import socket
import time
from dataclasses import dataclass
from email.message import Message
from urllib.parse import urlencode

from .programs import PATIENCE, Failed


@dataclass
class Answer:
    status: int
    headers: Message
    text: str
    ms: float


class Wire:
    """Speaks HTTP/1.1 to a server on this machine. A request is one write, and its time ends with the last byte of its
    answer: until then only the length is parsed."""

    def __init__(self, port: int):
        self.host = f"localhost:{port}"
        self.origin = f"http://{self.host}"
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get(self, path: str) -> Answer:
        return self._ask("GET", path, {}, b"")

    def post(self, path: str, fields: dict[str, str], headers: dict[str, str]) -> Answer:
        body = urlencode(fields).encode()
        form = {"Content-Type": "application/x-www-form-urlencoded", "Content-Length": str(len(body))}
        return self._ask("POST", path, form | headers, body)

    def _ask(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host}", *(f"{name}: {headers[name]}" for name in headers)]
        request = "\r\n".join([*lines, "", ""]).encode() + body
        begun = time.perf_counter()
        self.socket.sendall(request)
        head, text = self._answer()
        ms = (time.perf_counter() - begun) * 1000
        first, _, rest = head.partition(b"\r\n")
        return Answer(int(first.split()[1]), http.client.parse_headers(io.BytesIO(rest)), text.decode(), ms)

    def _answer(self) -> tuple[bytes, bytes]:
        """Returns head and body of an answer with a content length."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, body = data.partition(b"\r\n\r\n")
        named = head.lower().partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0]
        if not named:
            raise Failed("an answer does not say how long it is")
        while len(body) < int(named):
            body += self._more()
        return head + b"\r\n\r\n", body

    def _more(self) -> bytes:
        got = self.socket.recv(65536)
        if not got:
            raise Failed("the server closed the connection")
        return got

    def close(self) -> None:
        self.socket.close()
