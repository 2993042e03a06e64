"""The proxies of deploy/, with exactly the files from there."""

import socket
from pathlib import Path

from .nodes import ROOT, Node
from .place import Place, Process, Trouble, give, tool, wait_until
from .wire import Origin

ADDRESS = "127.0.0.1"
SIXTH = "[::1]"
READY_WITHIN_S = 60
NODES = ("172.28.0.11:8080", "172.28.0.12:8080")


class Proxy:
    """A proxy in front of nodes."""

    user = "nobody"

    def __init__(self, place: Place, nodes: list[Node], port: int):
        self.place, self.nodes, self.port = place, nodes, port
        self.folder = place.room(type(self).__name__.lower(), self.user)
        self.process: Process | None = None

    def example(self, name: str, more: dict[str, str]) -> Path:
        """Returns a file of deploy/ with our addresses in place of its own, each of which has to be there."""
        text = (ROOT / "deploy" / name).read_text()
        nodes = {name: f"{ADDRESS}:{node.port}" for name, node in zip(NODES, self.nodes)}
        for theirs, ours in (nodes | more).items():
            if theirs not in text:
                raise Trouble(f"deploy/{name} does not say {theirs!r}")
            text = text.replace(theirs, ours)
        file = self.folder / name
        file.write_text(text)
        give(file, self.user)
        return file

    def wait_until_ready(self) -> None:
        wait_until("the proxy answers", READY_WITHIN_S, lambda: Origin(self.port, "").get("/healthz").status == 200)

    def drain(self, number: int) -> None:
        """Takes a node out of rotation before it stops, if the proxy can be told to."""


class HAProxy(Proxy):
    user = "haproxy"

    def start(self) -> None:
        self.socket = self.folder / "admin.sock"
        file = self.example("haproxy.cfg", {"bind :8080": f"bind {ADDRESS}:{self.port}",
                                            "bind [::]:8080 v6only": f"bind {SIXTH}:{self.port}",
                                            "/run/haproxy/admin.sock": str(self.socket)})
        self.process = self.place.start("haproxy", [tool("haproxy", "haproxy"), "-db", "-f", file], self.user)
        self.wait_until_ready()

    def say(self, command: str) -> str:
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(str(self.socket))
            control.sendall(f"{command}\n".encode())
            return b"".join(iter(lambda: control.recv(65536), b"")).decode()

    def drain(self, number: int) -> None:
        self.say(f"set server portiere/{('one', 'two')[number]} state drain")

    def undrain(self, number: int) -> None:
        self.say(f"set server portiere/{('one', 'two')[number]} state ready")


class Nginx(Proxy):
    user = "www-data"

    def start(self) -> None:
        site = self.example("nginx.conf", {"listen 8080;": f"listen {ADDRESS}:{self.port};",
                                           "listen [::]:8080;": f"listen {SIXTH}:{self.port};"})
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        places = "\n".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in kinds)
        main = self.folder / "main.conf"
        main.write_text(f"daemon off;\npid {self.folder}/pid;\nerror_log {self.folder}/error.log;\nevents {{}}\n"
                        f"http {{\n{places}\naccess_log off;\ninclude {site};\n}}\n")
        give(main, self.user)
        words = [tool("nginx", "nginx-light"), "-p", self.folder, "-e", self.folder / "error.log", "-c", main]
        self.process = self.place.start("nginx", words, self.user)
        self.wait_until_ready()


PROXIES = (HAProxy, Nginx)
