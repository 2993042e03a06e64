"""HTTP for a client of the nodes: an answer, or none."""

import http.client
import socket
import threading
import time
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlencode, urlsplit

# Longer than any answer may take: a request without an answer by then hangs.
PATIENCE_S = 30
ADDRESS = "127.0.0.1"


@dataclass
class Answer:
    """`status` is 0 if there was no answer; `text` then says why."""

    status: int
    text: str = ""
    location: str = ""
    cookies: list[str] = field(default_factory=list)
    seconds: float = 0

    @property
    def unknown(self) -> bool:
        """Returns whether the result of the request is unknown."""
        return self.status == 0 or self.status >= 500

    def parameter(self, name: str) -> str | None:
        """Returns a parameter of the address that it redirects the browser to."""
        return parse_qs(urlsplit(self.location).query).get(name, [None])[0]


class Origin:
    """One connection to one node, reopened when it broke."""

    def __init__(self, port: int, host: str, tally=None):
        self.port, self.host, self.tally = port, host, tally
        # The address that it comes from, and headers that it always sends.
        self.source: str | None = None
        self.more: dict[str, str] = {}
        self.connection: http.client.HTTPConnection | None = None

    def get(self, path: str, headers: dict | None = None) -> Answer:
        return self._ask("GET", path, None, headers or {})

    def post(self, path: str, fields: dict, headers: dict | None = None) -> Answer:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._ask("POST", path, urlencode(fields), form | (headers or {}))

    def _ask(self, method: str, path: str, body: str | None, headers: dict) -> Answer:
        begun = time.monotonic()
        try:
            answer = self._exchange(method, path, body, headers)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            answer = Answer(0, "hangs" if isinstance(error, TimeoutError) else type(error).__name__)
        answer.seconds = time.monotonic() - begun
        if self.tally is not None:
            self.tally.note(method, path, answer)
        return answer

    def _exchange(self, method: str, path: str, body: str | None, headers: dict) -> Answer:
        if self.connection is None:
            self.connection = http.client.HTTPConnection(
                ADDRESS, self.port, timeout=PATIENCE_S, source_address=self.source and (self.source, 0))
            self.connection.connect()
            self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        host = {"Host": self.host} if self.host else {}
        self.connection.request(method, path, body, host | self.more | headers)
        got = self.connection.getresponse()
        text = got.read().decode(errors="replace")
        cookies = got.headers.get_all("Set-Cookie") or []
        if got.will_close:
            self.close()
        return Answer(got.status, text, got.headers.get("Location") or "", cookies)

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None


class Tally:
    """How often each kind of answer came, and the longest wait for one."""

    def __init__(self):
        self.lock = threading.Lock()
        self.counts: dict[tuple[str, int], int] = {}
        self.longest = (0.0, "")

    def note(self, method: str, path: str, answer: Answer) -> None:
        what = f"{method} {path.split('?')[0]}"
        with self.lock:
            key = (what, answer.status)
            self.counts[key] = self.counts.get(key, 0) + 1
            self.longest = max(self.longest, (answer.seconds, what))

    def __str__(self) -> str:
        return ", ".join(f"{what} {status}: {count}" for (what, status), count in sorted(self.counts.items()))

    def never(self) -> dict[str, int]:
        """Returns answers that must never occur: the server's own errors, and silence."""
        with self.lock:
            return {f"{what}: {status}": count for (what, status), count in self.counts.items()
                    if status >= 500 and status != 503 or status in (404, 405, 421)}
