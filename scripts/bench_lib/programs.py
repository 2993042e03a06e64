"""The programs that are run: cargo, the server, its command line, the load generator, the examples."""

import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from databases_lib.folder import free_port

ROOT = Path(__file__).resolve().parents[2]
RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
PORTIERE = RELEASE / "portiere"

# The longest that a server may take to start or to stop, in seconds.
PATIENCE = 60


class Failed(Exception):
    """The reason, in one line, why there is no figure."""


def build() -> None:
    """Builds the programs that are measured, and those that measure."""
    if subprocess.run([ROOT / "scripts/check-tools", "cc", "cargo"]).returncode:
        raise Failed("tools are missing")
    command = ["cargo", "build", "--release", "--locked", "--bin", "portiere"]
    for package in ("server", "load", "hasher", "store"):
        command += ["--package", package]
    for name in ("load", "delay", "rate", "writers", "grow", "trivial"):
        command += ["--example", name]
    if subprocess.run(command, cwd=ROOT).returncode:
        raise Failed("the workspace does not build")


def run(command: list, stdin: str = "") -> str:
    """Returns the standard output of a program that must succeed."""
    done = subprocess.run([str(part) for part in command], input=stdin, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{Path(command[0]).name} {command[1]}: {done.stderr.strip() or 'failed'}")
    return done.stdout


def example(name: str, *arguments, show: bool = False) -> str:
    """Runs an example; with `show` its progress goes to the terminal and nothing is returned."""
    command = [str(part) for part in (RELEASE / "examples" / name, *arguments)]
    if not show:
        return run(command)
    if subprocess.run(command).returncode:
        raise Failed(f"{name} failed")
    return ""


def pool_rate(seconds: float, *hashes) -> float:
    """Returns the passwords per second of the hashing pool alone: for the default policy, or for `hashes` (M, T, P of
    Argon2id, the text of a stored hash, or `argon2-rust`, which runs that library instead of the pool)."""
    return float(example("rate", seconds, *hashes))


def writers(folder: Path) -> dict[str, float]:
    """Returns what the store example measures on the disk of `folder`: two ratios and three rates."""
    text = example("writers", folder)
    found = dict(re.findall(r"^64 writers / (one at a time|plain SQLite) +([\d.]+)", text, re.M))
    rates = re.findall(r"^(plain SQLite|store, one|store, 64).*? ([\d.]+) batches/s", text, re.M)
    if len(found) != 2 or len(rates) != 3:
        raise Failed("the writers example says something else than it used to")
    return {name: float(value) for name, value in [*found.items(), *((f"{who} rate", rate) for who, rate in rates)]}


class Server:
    """A running server on a data folder, with the default configuration except for its port and `settings`; on only one
    `core`, and under another server's public `url`, if these are given."""

    def __init__(self, data: Path, settings: dict[str, str] | None = None, core: int | None = None, url: str | None = None):
        self.data, self.port = data, free_port()
        self.url = url or f"http://localhost:{self.port}"
        # How to reach it if its name leads to another server.
        self.way = ["--connect-to", f"127.0.0.1:{self.port}"] if url else []
        public = {"PORTIERE_PUBLIC_URL": url} if url else {}
        mine = {name: value for name, value in os.environ.items() if not name.startswith("PORTIERE_")}
        command = [PORTIERE, "serve", "--data", data, "--listen", f"127.0.0.1:{self.port}"]
        if core is not None:
            command = ["taskset", "--cpu-list", str(core), *command]
        self.log = (data.parent / f"{data.name}.log").open("ab")
        begun = time.perf_counter()
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, env=mine | public | (settings or {}))
        self._wait_until_ready()
        self.ready_ms = (time.perf_counter() - begun) * 1000
        self.pid = self.process.pid

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5):
                    return
            except (OSError, urllib.error.URLError):
                time.sleep(0.001)
        self.stop()
        raise Failed(f"the server does not start: see {self.log.name}")

    def settle(self) -> None:
        """Waits until the work after the start (checks, measurements) is done: a second with next to no CPU."""
        from .machine import cpu_seconds
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            before = cpu_seconds(self.pid)
            time.sleep(1)
            if cpu_seconds(self.pid) - before < 0.05:
                return

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_) -> None:
        self.stop()


def load(server: Server, workload: str, *, vus: int, seconds: float, arguments: list) -> dict:
    """Returns one report of the load generator, without failures."""
    command = [RELEASE / "examples" / "load", workload, "--json", "--target", server.url, "--vus", vus, "--duration",
               f"{seconds}s", "--warmup", f"{min(2.0, seconds / 3)}s", "--server-pid", server.pid, *server.way,
               *arguments]
    (report,) = json.loads(run(command))["runs"]
    return report
