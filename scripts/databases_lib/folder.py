"""The folder of a server of any kind: what is in it, and who owns it."""

import os
import pwd
import random
import shutil
import socket
import subprocess
from pathlib import Path


def url(folder: Path) -> str:
    """Returns the URL of the server in `folder`, for a user with all privileges."""
    return (folder / "url").read_text().strip()


def keep_private(path: Path, text: str) -> None:
    """Writes a file that contains a password."""
    path.touch(0o600)
    path.write_text(text)


def free_port(address: str = "127.0.0.1") -> int:
    """Returns a port of that address which is free at present and which the system does not hand out before it is
    taken: ports for connections and for programs that ask for any port begin at 32768 (Linux) or higher."""
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind((address, port))
            except OSError:
                continue
            return port


class Owner:
    """The user that a server runs as: if started by root, the package's own user, who may do nothing else."""

    def __init__(self, name: str):
        self.name = name

    def account(self) -> pwd.struct_passwd | None:
        if os.geteuid() != 0:
            return None
        try:
            return pwd.getpwnam(self.name)
        except KeyError:
            return pwd.getpwnam("nobody")

    def running(self) -> dict:
        """Returns how to run something as this user."""
        who = self.account()
        return {} if who is None else {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}

    def own(self, folder: Path) -> None:
        """Gives this user the folder and its contents."""
        who = self.account()
        for path in [] if who is None else [folder, *folder.iterdir()]:
            os.chown(path, who.pw_uid, who.pw_gid)


def certify(folder: Path, client: str) -> None:
    """Makes an authority, its certificate for this server, and one for `client`, if OpenSSL is installed."""
    if shutil.which("openssl") is None:
        return

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *key, "-days", "3650", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority of a test")
    for name, who, alias in (("server", "server", "DNS:localhost,IP:127.0.0.1"), ("client", client, "DNS:client")):
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={who}")
        (folder / "alias.cnf").write_text(f"subjectAltName = {alias}\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", "3650", "-extfile", "alias.cnf", "-out", f"{name}.pem")
        (folder / f"{name}.key").chmod(0o600)
