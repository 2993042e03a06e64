"""Servers of MariaDB and of MySQL: how both are started and stopped."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from .folder import Owner, certify, free_port, keep_private, url

# The settings of a server that keeps acknowledged commits; all others are defaults, except those that save memory.
SETTINGS = {
    "bind-address": "127.0.0.1",
    "innodb-flush-log-at-trx-commit": "1",
    "sync-binlog": "1",
    "innodb-doublewrite": "ON",
    "innodb-buffer-pool-size": "256M",
    "max-connections": "1000",
    "performance-schema": "OFF",
}

READY_WITHIN_S = 60
DOWN_WITHIN_S = 60

OWNER = Owner("mysql")


@dataclass(frozen=True)
class Kin:
    """One of the two. Its programs are looked for in the folder that the environment names by `where`, then on the
    PATH.

    `root` is run at every start, with `{password}` filled in.
    """

    daemon: str
    client: str
    where: str
    advice: str
    settings: dict[str, str]
    install: list[str]
    root: str

    def up(self, folder: Path, port: int = 0, settings: dict[str, str] | None = None) -> str:
        """Starts a server with its data in `folder`, which is created if it does not exist. Returns its admin URL.

        A folder that held a server before is started again as it was, with the same port and password.
        """
        folder = folder.resolve()
        if self.running(folder):
            return url(folder)
        if not (folder / "data").exists():
            self.create(folder, port or free_port())
        self.configure(folder, settings or {})
        OWNER.own(folder)
        log = self.log(folder).open("ab")
        subprocess.Popen(
            [self.tool(self.daemon), f"--defaults-file={folder / 'server.cnf'}"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **OWNER.running(),
        )
        self.wait_until_ready(folder)
        return url(folder)

    def down(self, folder: Path) -> None:
        """Stops the server of `folder`, if one is running."""
        folder = folder.resolve()
        pid = self.running(folder)
        if pid is None:
            return
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + DOWN_WITHIN_S
        while self.running(folder) is not None:
            if time.monotonic() > deadline:
                raise SystemExit(f"the server {pid} does not stop; see {self.log(folder)}")
            time.sleep(0.05)

    def running(self, folder: Path) -> int | None:
        """Returns the process that serves `folder`."""
        try:
            pid = int((folder / f"{self.daemon}.pid").read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (OSError, ValueError, IndexError):
            return None
        # The PID may have been reused since, and a zombie stays until its parent reaps it.
        return pid if str(folder).encode() in command and state != "Z" else None

    def database(self, folder: Path, name: str) -> str:
        """Creates an empty database. Returns its URL."""
        password = url(folder).split(":")[2].split("@")[0]
        subprocess.run(
            [self.tool(self.client), "--no-defaults", f"--socket={folder / 'socket'}", "--user=root",
             "-e", f"CREATE DATABASE `{name}`"],
            check=True, env=os.environ | {"MYSQL_PWD": password},
        )
        return f"{url(folder)}/{name}"

    def create(self, folder: Path, port: int) -> None:
        """Creates an empty server."""
        folder.mkdir(parents=True, exist_ok=True)
        OWNER.own(folder)
        password = secrets.token_hex(16)
        program, *words = self.install
        subprocess.run(
            [self.tool(program), "--no-defaults", f"--datadir={folder / 'data'}", *words],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **OWNER.running(),
        )
        certify(folder, "client")
        # Run at every start; its effect is always the same.
        keep_private(folder / "init.sql", self.root.format(password=password))
        (folder / "port").write_text(str(port))
        keep_private(folder / "url", f"mysql://root:{password}@127.0.0.1:{port}\n")

    def configure(self, folder: Path, settings: dict[str, str]) -> None:
        """Writes the server's settings."""
        # A starting server removes what others left in a folder for temporary tables, even if they still use it.
        (folder / "tmp").mkdir(exist_ok=True)
        places = {
            "tmpdir": folder / "tmp",
            "datadir": folder / "data",
            "socket": folder / "socket",
            "pid-file": folder / f"{self.daemon}.pid",
            "init-file": folder / "init.sql",
            "port": (folder / "port").read_text(),
        }
        if (folder / "server.pem").exists():
            places |= {"ssl-ca": folder / "ca.pem", "ssl-cert": folder / "server.pem", "ssl-key": folder / "server.key"}
        lines = [f"{name} = {value}" for name, value in (places | SETTINGS | self.settings | settings).items()]
        (folder / "server.cnf").write_text("\n".join([f"[{self.daemon}]", *lines, ""]))

    def wait_until_ready(self, folder: Path) -> None:
        """Waits until the server greets new connections."""
        port = int((folder / "port").read_text())
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=1) as conn:
                    if self.running(folder) and conn.recv(1):
                        return
            except OSError:
                pass
            time.sleep(0.05)
        sys.stderr.write(self.log(folder).read_text(errors="replace")[-4000:])
        raise SystemExit(f"the server in {folder} is not ready after {READY_WITHIN_S} s")

    def log(self, folder: Path) -> Path:
        """Returns the server's log file."""
        return folder / f"{self.daemon}.log"

    def tool(self, name: str) -> str:
        """Returns a program of the package."""
        found = shutil.which(name, path=f"{os.environ.get(self.where, '')}:{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
        if found is None:
            raise SystemExit(f"{name} is not installed: {self.advice}")
        return found
