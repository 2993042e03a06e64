"""A MariaDB server of one's own for tests and measurements: on loopback, durable, in one folder."""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

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
    own(folder)
    log = (folder / "mariadbd.log").open("ab")
    subprocess.Popen(
        [tool("mariadbd"), f"--defaults-file={folder / 'server.cnf'}"],
        stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **as_owner(),
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


def database(folder: Path, name: str) -> str:
    """Makes an empty database on the server of `folder`. Answers its URL."""
    admin = url(folder)
    password = admin.split("@")[0].rsplit(":", 1)[1]
    subprocess.run(
        [tool("mariadb"), "--no-defaults", f"--socket={folder / 'socket'}", "--user=root",
         f"--execute=CREATE DATABASE `{name}`"],
        check=True, env=os.environ | {"MYSQL_PWD": password},
    )
    return f"{admin}/{name}"


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


def url(folder: Path) -> str:
    """Where the server of `folder` is, as one who may do everything."""
    return (folder / "url").read_text().strip()


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
    own(folder)
    password = secrets.token_hex(16)
    subprocess.run(
        [tool("mariadb-install-db"), "--no-defaults", f"--datadir={folder / 'data'}", "--skip-test-db",
         "--auth-root-authentication-method=normal"],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **as_owner(),
    )
    certify(folder)
    # Run at every start: says the same each time.
    (folder / "init.sql").touch(0o600)
    (folder / "init.sql").write_text(
        "DROP USER IF EXISTS root@'127.0.0.1', root@'::1';\n"
        f"CREATE OR REPLACE USER root@localhost IDENTIFIED BY '{password}';\n"
        "GRANT ALL ON *.* TO root@localhost WITH GRANT OPTION;\n"
    )
    (folder / "port").write_text(str(port))
    (folder / "url").touch(0o600)
    (folder / "url").write_text(f"mysql://root:{password}@127.0.0.1:{port}\n")


def configure(folder: Path, settings: dict[str, str]) -> None:
    """Writes the server's settings."""
    places = {
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


def certify(folder: Path) -> None:
    """An authority, a certificate of it for this server, and one for a client, where OpenSSL is installed."""
    if shutil.which("openssl") is None:
        return

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "3650"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority of a test")
    for name, alias in (("server", "DNS:localhost,IP:127.0.0.1"), ("client", "DNS:client")):
        # The request is unlike a certificate in `-days`.
        openssl("req", *key[:-2], "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (folder / "alias.cnf").write_text(f"subjectAltName = {alias}\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", "3650", "-extfile", "alias.cnf", "-out", f"{name}.pem")


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


def free_port() -> int:
    """A port of loopback that nobody has at present."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def owner() -> pwd.struct_passwd | None:
    """As whom the server runs: root gives it to somebody who may do nothing else."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("mysql")
    except KeyError:
        return pwd.getpwnam("nobody")


def as_owner() -> dict:
    """How to run something as [owner]."""
    who = owner()
    return {} if who is None else {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}


def own(folder: Path) -> None:
    """Gives the folder, and what is in it, to [owner]."""
    who = owner()
    if who is None:
        return
    for path in [folder, *folder.iterdir()]:
        os.chown(path, who.pw_uid, who.pw_gid)


def tool(name: str) -> str:
    """A program of the package `mariadb-server`."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        raise SystemExit(f"{name} is not installed: apt-get install mariadb-server")
    return found
