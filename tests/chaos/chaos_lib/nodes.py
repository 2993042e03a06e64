"""Two nodes of Portiere on one database, and an operator's commands to them."""

import base64
import json
import os
import secrets
import shutil
import subprocess
from pathlib import Path

from databases_lib.folder import free_port

from .place import Place, Process, Trouble, as_user, give, wait_until
from .wire import Origin

ROOT = Path(__file__).resolve().parents[3]
USER = "nobody"
COUNT = 2
READY_WITHIN_S = 60
COMMAND_WITHIN_S = 40

# The cheapest hash that a server accepts (OWASP's last row); the oracle tries wrong passwords, which must not wait.
SETTINGS = {
    "PORTIERE_HASH_ARGON2_MEMORY_KIB": "7168",
    "PORTIERE_HASH_ARGON2_PASSES": "5",
    "PORTIERE_HASH_MAX_WAIT": "20s",
    "PORTIERE_SIGNUP_ENABLED": "true",
    "PORTIERE_THROTTLE_FREE_FAILURES": "1000",
    "PORTIERE_THROTTLE_ADDRESS_FREE_FAILURES": "1000000",
    "PORTIERE_REFRESH_GRACE": "1s",
    # A repeated code is refused because it was redeemed, not because it expired.
    "PORTIERE_CODE_TTL": "10m",
    "PORTIERE_LOG_LEVEL": "info",
}
GRACE_S = 1


class Node:
    """One node."""

    def __init__(self, place: Place, number: int, environment: dict):
        self.place, self.environment = place, environment
        self.name = f"node{number + 1}"
        self.data = place.room(self.name, USER)
        self.port = free_port()
        self.process: Process | None = None

    def start(self) -> None:
        words = [program(self.place), "serve", "--data", self.data, "--listen", f"127.0.0.1:{self.port}"]
        self.process = self.place.start(self.name, words, USER, self.environment)

    def stop(self) -> None:
        self.process.stop()

    def kill(self) -> None:
        self.process.kill()

    def runs(self) -> bool:
        return self.process is not None and self.process.runs()

    def ready(self) -> dict | None:
        """Returns what it reports about itself when it can serve."""
        answer = Origin(self.port, "").get("/readyz")
        return json.loads(answer.text) if answer.status == 200 else None

    def wait_until_ready(self) -> dict:
        def found():
            if not self.runs():
                raise Trouble(f"{self.name} ended: {self.log()[-2000:]}")
            return self.ready()
        return wait_until(f"{self.name} is ready", READY_WITHIN_S, found)

    def wait_until_settled(self) -> None:
        """Waits until it is ready and has no fence up: every node has replayed its journal."""
        def found():
            said = self.ready()
            return said is not None and not (said.get("fence") or {}).get("up")
        self.wait_until_ready()
        wait_until(f"{self.name} has no fence", READY_WITHIN_S, found)

    def command(self, *words: str, given: str = "") -> str | None:
        """Runs a command on it; returns None if that failed, or its result is unknown. On a node that is gone no
        command runs: it would find the journal there, and replay it."""
        if not self.runs():
            return None
        line = [program(self.place), *words, "--data", self.data, "--json"]
        try:
            done = subprocess.run(
                [str(word) for word in line], input=given, capture_output=True, text=True, timeout=COMMAND_WITHIN_S, cwd="/",
                env=os.environ | self.environment, **as_user(USER),
            )
        except subprocess.TimeoutExpired:
            return None
        return done.stdout if done.returncode == 0 else None

    def log(self) -> str:
        return (self.place.folder / f"{self.name}.log").read_text(errors="replace")


def start(place: Place, urls: list[str], public_url: str | None = None, more: dict | None = None) -> list[Node]:
    """Starts a node for each URL of the one database, all with one master key, and waits until they are ready."""
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    same = SETTINGS | {"PORTIERE_KEYS_MASTER_KEY": key, "PORTIERE_AUDIT_KEY": key} | (more or {})
    nodes = [Node(place, number, same | {"PORTIERE_STORE_URL": url}) for number, url in enumerate(urls)]
    issuer = public_url or f"http://localhost:{nodes[0].port}"
    for node in nodes:
        node.environment["PORTIERE_PUBLIC_URL"] = issuer
        node.start()
        node.wait_until_ready()
    return nodes


def program(place: Place) -> Path:
    """Returns a copy of the program under test that its user can read."""
    copy = place.folder / "portiere"
    if not copy.exists():
        built = Path(os.environ.get("PORTIERE_BINARY") or ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "debug/portiere")
        if not built.exists():
            raise Trouble(f"{built} is not there: cargo build")
        shutil.copy(built, copy)
        copy.chmod(0o755)
        give(copy, USER)
    return copy
