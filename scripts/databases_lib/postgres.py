"""Our own PostgreSQL server for tests and measurements: on loopback, durable, in one folder."""

import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

from .folder import Owner, certify, free_port, keep_private, url

# The settings of a server that keeps acknowledged commits; all others are defaults, except those that save memory.
SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "shared_buffers": "256MB",
    "max_connections": "1000",
    # A test may cause many WARNINGs; the log says which statement did.
    "log_line_prefix": "'%m [%p] %d '",
}

READY_WITHIN_S = 60

OWNER = Owner("postgres")


def up(folder: Path, port: int = 0, settings: dict[str, str] | None = None) -> str:
    """Starts a server with its data in `folder`, which is created if it does not exist. Returns its admin URL.

    A folder that held a server before is started again as it was, with the same port and password.
    """
    folder = folder.resolve()
    if running(folder):
        return url(folder)
    if not (folder / "data").exists():
        create(folder, port or free_port())
    configure(folder, settings or {})
    started = control(folder, "start", "-w", "-t", str(READY_WITHIN_S), "-s", "-l", str(folder / "postgres.log"))
    if started.returncode != 0:
        sys.stderr.write((folder / "postgres.log").read_text(errors="replace")[-4000:] + started.stderr)
        raise SystemExit(f"the server in {folder} does not start")
    return url(folder)


def down(folder: Path) -> None:
    """Stops the server of `folder`, if one is running."""
    folder = folder.resolve()
    if running(folder) and (stopped := control(folder, "stop", "-w", "-s", "-m", "fast")).returncode != 0:
        raise SystemExit(f"the server in {folder} does not stop: {stopped.stderr}")


def running(folder: Path) -> int | None:
    """Returns the process that serves `folder`."""
    try:
        pid = int((folder / "data" / "postmaster.pid").read_text().split()[0])
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError, IndexError):
        return None
    # The PID may have been reused since.
    return pid if str(folder).encode() in command else None


def database(folder: Path, name: str) -> str:
    """Creates an empty database. Returns its URL."""
    subprocess.run([tool("psql"), url(folder), "-q", "-c", f'CREATE DATABASE "{name}"'], check=True)
    return url(folder).rsplit("/", 1)[0] + f"/{name}"


def create(folder: Path, port: int) -> None:
    """Creates an empty server. Its default collation is linguistic, so code that needs another one has to say so."""
    folder.mkdir(parents=True, exist_ok=True)
    password = secrets.token_hex(16)
    keep_private(folder / "password", password)
    # A test uses a role of this name, which signs in only with its certificate.
    certify(folder, "certified")
    OWNER.own(folder)
    subprocess.run(
        [tool("initdb"), "-D", folder / "data", "-U", "postgres", "--pwfile", folder / "password", "-A", "scram-sha-256",
         "--data-checksums", "-E", "UTF8", "--locale", "C.UTF-8", "--locale-provider", "icu", "--icu-locale", "en-US"],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **OWNER.running(),
    )
    with (folder / "data" / "pg_hba.conf").open("w") as rules:
        rules.write("local all all scram-sha-256\n")
        # This role is authenticated by its certificate.
        rules.write("hostssl all certified 127.0.0.1/32 cert\n" if (folder / "server.pem").exists() else "")
        rules.write("host all all 127.0.0.1/32 scram-sha-256\nhost replication all 127.0.0.1/32 scram-sha-256\n")
    (folder / "port").write_text(str(port))
    keep_private(folder / "url", f"postgres://postgres:{password}@127.0.0.1:{port}/postgres\n")


def configure(folder: Path, settings: dict[str, str]) -> None:
    """Writes the server's settings."""
    places = {
        "listen_addresses": "'127.0.0.1'",
        "port": (folder / "port").read_text(),
        "unix_socket_directories": f"'{folder}'",
    }
    if (folder / "server.pem").exists():
        files = {"ssl_ca_file": "ca.pem", "ssl_cert_file": "server.pem", "ssl_key_file": "server.key"}
        places |= {"ssl": "on"} | {name: f"'{folder / file}'" for name, file in files.items()}
    lines = [f"{name} = {value}" for name, value in (places | SETTINGS | settings).items()]
    (folder / "server.conf").write_text("\n".join([*lines, ""]))
    OWNER.own(folder)


def control(folder: Path, *words: str) -> subprocess.CompletedProcess:
    """Runs pg_ctl. The server itself has no terminal and no pipe of ours."""
    options = f"-c config_file={folder / 'server.conf'} -c hba_file={folder / 'data' / 'pg_hba.conf'}"
    start = ["-o", f"-c data_directory={folder / 'data'} {options}"] if words[0] == "start" else []
    return subprocess.run(
        [tool("pg_ctl"), "-D", folder / "data", *words, *start],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd="/", **OWNER.running(),
    )


def tool(name: str) -> str:
    """Returns a program of the package `postgresql`: of the newest version that Debian has, or the one on the PATH."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*"), key=lambda path: int(path.name) if path.name.isdigit() else 0)
    found = shutil.which(name, path=":".join([*(str(path / "bin") for path in reversed(versions)), os.environ.get("PATH", "")]))
    if found is None:
        raise SystemExit(f"{name} is not installed: apt-get install postgresql")
    return found
