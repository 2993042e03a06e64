"""A PostgreSQL server of one's own for tests and measurements: on loopback, durable, in one folder."""

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
from pathlib import Path

# What a server that keeps acknowledged commits is set to; the rest is the package's default, but for what takes memory.
SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "shared_buffers": "256MB",
    "max_connections": "1000",
    # A test may bring many WARNINGs about; its log says which statement did.
    "log_line_prefix": "'%m [%p] %d '",
}

READY_WITHIN_S = 60


def up(folder: Path, port: int = 0, settings: dict[str, str] | None = None) -> str:
    """Starts a server with its data in `folder`, which is made where it is not there. Answers its admin URL.

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
    """Stops the server of `folder`, if one runs."""
    folder = folder.resolve()
    if running(folder) and (stopped := control(folder, "stop", "-w", "-s", "-m", "fast")).returncode != 0:
        raise SystemExit(f"the server in {folder} does not stop: {stopped.stderr}")


def running(folder: Path) -> int | None:
    """The process that serves `folder`."""
    try:
        pid = int((folder / "data" / "postmaster.pid").read_text().split()[0])
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError, IndexError):
        return None
    # The number may have gone to another process since.
    return pid if str(folder).encode() in command else None


def url(folder: Path) -> str:
    """Where the server of `folder` is, as one who may do everything."""
    return (folder / "url").read_text().strip()


def database(folder: Path, name: str) -> str:
    """Makes an empty database. Answers its URL."""
    subprocess.run([tool("psql"), url(folder), "-q", "-c", f'CREATE DATABASE "{name}"'], check=True)
    return url(folder).rsplit("/", 1)[0] + f"/{name}"


def create(folder: Path, port: int) -> None:
    """Makes an empty server. Its own collation is one for people, so that whoever needs another has to say so."""
    folder.mkdir(parents=True, exist_ok=True)
    password = secrets.token_hex(16)
    (folder / "password").touch(0o600)
    (folder / "password").write_text(password)
    certify(folder)
    own(folder)
    subprocess.run(
        [tool("initdb"), "-D", folder / "data", "-U", "postgres", "--pwfile", folder / "password", "-A", "scram-sha-256",
         "--data-checksums", "-E", "UTF8", "--locale", "C.UTF-8", "--locale-provider", "icu", "--icu-locale", "en-US"],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **as_owner(),
    )
    with (folder / "data" / "pg_hba.conf").open("w") as rules:
        rules.write("local all all scram-sha-256\n")
        # This one is who its certificate says.
        rules.write("hostssl all certified 127.0.0.1/32 cert\n" if (folder / "server.pem").exists() else "")
        rules.write("host all all 127.0.0.1/32 scram-sha-256\nhost replication all 127.0.0.1/32 scram-sha-256\n")
    (folder / "port").write_text(str(port))
    (folder / "url").touch(0o600)
    (folder / "url").write_text(f"postgres://postgres:{password}@127.0.0.1:{port}/postgres\n")


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
    own(folder)


def certify(folder: Path) -> None:
    """An authority, a certificate of it for this server, and one for a client, where OpenSSL is installed."""
    if shutil.which("openssl") is None:
        return

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *key, "-days", "3650", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority of a test")
    for name, who, alias in (("server", "server", "DNS:localhost,IP:127.0.0.1"), ("client", "certified", "DNS:client")):
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={who}")
        (folder / "alias.cnf").write_text(f"subjectAltName = {alias}\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", "3650", "-extfile", "alias.cnf", "-out", f"{name}.pem")
        (folder / f"{name}.key").chmod(0o600)


def control(folder: Path, *words: str) -> subprocess.CompletedProcess:
    """Runs pg_ctl. The server itself has no terminal and no pipe of ours."""
    options = f"-c config_file={folder / 'server.conf'} -c hba_file={folder / 'data' / 'pg_hba.conf'}"
    start = ["-o", f"-c data_directory={folder / 'data'} {options}"] if words[0] == "start" else []
    return subprocess.run(
        [tool("pg_ctl"), "-D", folder / "data", *words, *start],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd="/", **as_owner(),
    )


def free_port() -> int:
    """A port of loopback that nobody has at present."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def owner() -> pwd.struct_passwd | None:
    """As whom the server runs: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
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
    """A program of the package `postgresql`: the newest of those that Debian keeps beside each other, or the PATH's."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*"), key=lambda path: int(path.name) if path.name.isdigit() else 0)
    found = shutil.which(name, path=":".join([*(str(path / "bin") for path in reversed(versions)), os.environ.get("PATH", "")]))
    if found is None:
        raise SystemExit(f"{name} is not installed: apt-get install postgresql")
    return found
