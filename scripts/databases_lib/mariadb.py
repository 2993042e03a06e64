"""A MariaDB server of one's own for tests and measurements: on loopback, durable, in one folder."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from .folder import Owner, certify, free_port, keep_private, url

# What a server that keeps acknowledged commits is set to; the rest is the package's default, but for what takes memory.
SETTINGS = {
    "bind-address": "127.0.0.1",
    "innodb-flush-log-at-trx-commit": "1",
    "sync-binlog": "1",
    "innodb-doublewrite": "ON",
    "innodb-buffer-pool-size": "256M",
    "innodb-log-file-size": "256M",
    "max-connections": "1000",
    "performance-schema": "OFF",
}

READY_WITHIN_S = 60
DOWN_WITHIN_S = 60

OWNER = Owner("mysql")


def up(folder: Path, port: int = 0, settings: dict[str, str] | None = None) -> str:
    """Starts a server with its data in `folder`, which is made where it is not there. Answers its admin URL.

    A folder that held a server before is started again as it was, with the same port and password.
    """
    folder = folder.resolve()
    if running(folder):
        return url(folder)
    data = folder / "data"
    if not data.exists():
        create(folder, port or free_port())
    configure(folder, settings or {})
    OWNER.own(folder)
    log = (folder / "mariadbd.log").open("ab")
    subprocess.Popen(
        [tool("mariadbd"), f"--defaults-file={folder / 'server.cnf'}"],
        stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **OWNER.running(),
    )
    wait_until_ready(folder)
    return url(folder)


def down(folder: Path) -> None:
    """Stops the server of `folder`, if one runs."""
    folder = folder.resolve()
    pid = running(folder)
    if pid is None:
        return
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + DOWN_WITHIN_S
    while running(folder) is not None:
        if time.monotonic() > deadline:
            raise SystemExit(f"the server {pid} does not stop; see {folder / 'mariadbd.log'}")
        time.sleep(0.05)


def running(folder: Path) -> int | None:
    """The process that serves `folder`."""
    try:
        pid = int((folder / "mariadbd.pid").read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (OSError, ValueError, IndexError):
        return None
    # The number may have gone to another process since, and a dead one stays until its parent looks.
    return pid if str(folder).encode() in command and state != "Z" else None


def database(folder: Path, name: str) -> str:
    """Makes an empty database. Answers its URL."""
    password = url(folder).split(":")[2].split("@")[0]
    subprocess.run(
        [tool("mariadb"), "--no-defaults", f"--socket={folder / 'socket'}", "--user=root", "-e", f"CREATE DATABASE `{name}`"],
        check=True, env=os.environ | {"MYSQL_PWD": password},
    )
    return f"{url(folder)}/{name}"


def create(folder: Path, port: int) -> None:
    """Makes an empty server."""
    folder.mkdir(parents=True, exist_ok=True)
    OWNER.own(folder)
    password = secrets.token_hex(16)
    subprocess.run(
        [tool("mariadb-install-db"), "--no-defaults", f"--datadir={folder / 'data'}", "--skip-test-db",
         "--auth-root-authentication-method=normal"],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **OWNER.running(),
    )
    certify(folder, "client")
    # Run at every start: says the same each time.
    keep_private(
        folder / "init.sql",
        "DROP USER IF EXISTS root@'127.0.0.1', root@'::1';\n"
        f"CREATE OR REPLACE USER root@localhost IDENTIFIED BY '{password}';\n"
        "GRANT ALL ON *.* TO root@localhost WITH GRANT OPTION;\n",
    )
    (folder / "port").write_text(str(port))
    keep_private(folder / "url", f"mysql://root:{password}@127.0.0.1:{port}\n")


def configure(folder: Path, settings: dict[str, str]) -> None:
    """Writes the server's settings."""
    # A server that starts removes what others left in a folder for temporary tables, also what they still use.
    (folder / "tmp").mkdir(exist_ok=True)
    places = {
        "tmpdir": folder / "tmp",
        "datadir": folder / "data",
        "socket": folder / "socket",
        "pid-file": folder / "mariadbd.pid",
        "init-file": folder / "init.sql",
        "port": (folder / "port").read_text(),
    }
    if (folder / "server.pem").exists():
        places |= {"ssl-ca": folder / "ca.pem", "ssl-cert": folder / "server.pem", "ssl-key": folder / "server.key"}
    lines = [f"{name} = {value}" for name, value in (places | SETTINGS | settings).items()]
    (folder / "server.cnf").write_text("\n".join(["[mariadbd]", *lines, ""]))


def wait_until_ready(folder: Path) -> None:
    """Until the server greets who connects."""
    port = int((folder / "port").read_text())
    deadline = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as conn:
                if running(folder) and conn.recv(1):
                    return
        except OSError:
            pass
        time.sleep(0.05)
    sys.stderr.write((folder / "mariadbd.log").read_text(errors="replace")[-4000:])
    raise SystemExit(f"the server in {folder} is not ready after {READY_WITHIN_S} s")


def tool(name: str) -> str:
    """A program of the package `mariadb-server`."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        raise SystemExit(f"{name} is not installed: apt-get install mariadb-server")
    return found
