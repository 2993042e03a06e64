"""Three MariaDB servers in a Galera cluster."""

import configparser
import os
import random
import re
import subprocess
import time
from pathlib import Path

from databases_lib import mariadb
from databases_lib.folder import certify, free_port

from .members import ADDRESSES, USER, Member, Members, must_run
from .nodes import ROOT
from .place import Place, Strike, Trouble, as_user, give, password, run, wait_until

LIBRARIES = ("/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so")
STARTED_WITHIN_S = 90
HOME_WITHIN_S = 90

# Settings that save memory, and provoke more problems; deploy/galera.cnf has the others.
SETTINGS = {
    "innodb-buffer-pool-size": "64M",
    "innodb-log-file-size": "64M",
    "max-connections": "200",
    "performance-schema": "OFF",
    "wsrep-slave-threads": "2",
}
# The addresses and paths in deploy/galera.cnf, which ours replace.
PLACES = {"bind-address", "wsrep-provider", "wsrep-cluster-address"}


class Node(Member):
    """One server."""

    @property
    def server(self) -> str:
        return mariadb.tool("mariadbd")

    @property
    def client(self) -> str:
        return mariadb.tool("mariadb")

    def __init__(self, place: Place, number: int):
        super().__init__(place, number)
        self.group, self.ist, self.sst = (free_port(self.address) for _ in range(3))

    def install(self) -> None:
        run([mariadb.tool("mariadb-install-db"), "--no-defaults", f"--datadir={self.folder / 'data'}", "--skip-test-db",
             "--auth-root-authentication-method=normal"], USER)

    def configure(self, members: list["Node"]) -> None:
        group = ",".join(f"{member.address}:{member.group}" for member in members)
        # A starting server removes the temporary tables of others in the same folder.
        (self.folder / "tmp").mkdir(exist_ok=True)
        give(self.folder / "tmp", USER)
        options = {"gmcast.listen_addr": f"tcp://{self.address}:{self.group}", "ist.recv_addr": f"{self.address}:{self.ist}",
                   "gcache.size": "64M"}
        sections = example()
        settings = sections["mariadbd"] | SETTINGS | {
            "bind-address": self.address,
            "port": str(self.port),
            "datadir": self.folder / "data",
            "tmpdir": self.folder / "tmp",
            "socket": self.folder / "socket",
            "pid-file": self.folder / "mariadbd.pid",
            "wsrep-provider": library(),
            "wsrep-cluster-address": f"gcomm://{group}",
            "wsrep-node-name": self.name,
            "wsrep-node-address": f"{self.address}:{self.group}",
            "wsrep-node-incoming-address": f"{self.address}:{self.port}",
            "wsrep-sst-receive-address": f"{self.address}:{self.sst}",
            "wsrep-provider-options": f'"{";".join(f"{name}={value}" for name, value in options.items())}"',
        }
        # As docs/guide/several-machines.md says: copying all data to a joining node differs from what clients see.
        certify(self.folder, "portiere")
        if (self.folder / "server.pem").exists():
            settings |= {"ssl-cert": self.folder / "server.pem", "ssl-key": self.folder / "server.key"}
            give(self.folder / "server.key", USER)
        file = self.folder / "server.cnf"
        lines = []
        for name, section in (sections | {"mariadbd": settings}).items():
            lines += [f"[{name}]", *(f"{name} = {value}" for name, value in section.items()), ""]
        file.write_text("\n".join(lines))
        give(file, USER)

    def start_again(self, place: Place) -> None:
        """Restarts after kill -9: with its last position, it asks the others for what it missed instead of for
        everything."""
        log = self.folder / "recovery.log"
        subprocess.run(
            [mariadb.tool("mariadbd"), f"--defaults-file={self.folder / 'server.cnf'}", "--wsrep-recover", f"--log-error={log}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, **as_user(USER),
        )
        found = re.findall(r"Recovered position: (\S+)", log.read_text(errors="replace"))
        self.start(place, *([f"--wsrep-start-position={found[-1]}"] if found else []))


class Galera(Members):
    """The cluster. With `apart`, the nodes of Portiere start with different members."""

    within = STARTED_WITHIN_S

    def __init__(self, place: Place, apart: bool = False):
        self.place, self.apart = place, apart
        self.admin, self.secret = "", password()
        self.members = [Node(place, number) for number in range(len(ADDRESSES))]
        for member in self.members:
            member.install()
            member.configure(self.members)
        first, *others = self.members
        first.start(place, "--wsrep-new-cluster")
        wait_until("the first Galera node is ready", STARTED_WITHIN_S, lambda: self.is_ready(first, 1))
        self._make_database(first)
        for count, member in enumerate(others, 2):
            member.start(place)
            wait_until("the next Galera node is ready", STARTED_WITHIN_S, lambda: self.is_ready(member, count))

    def orders(self) -> list[list[Node]]:
        return [self.members, self.members[::-1] if self.apart else self.members]

    def wait_until_home(self) -> None:
        """Waits until all nodes use the first member in their URLs again, once it has been well for a while."""
        first, *others = self.members
        if not self.apart:
            wait_until("every node is back at the first member", HOME_WITHIN_S,
                       lambda: self.connections(first) and not any(map(self.connections, others)))

    def is_ready(self, member: Member, size: int) -> bool:
        must_run(member)
        said = member.say("SHOW STATUS WHERE Variable_name IN ('wsrep_local_state_comment', 'wsrep_cluster_status', "
                          "'wsrep_cluster_size')", self.admin)
        status = dict(line.split("\t") for line in (said or "").splitlines())
        return list(status.values()) and status == {
            "wsrep_local_state_comment": "Synced", "wsrep_cluster_status": "Primary", "wsrep_cluster_size": str(size)}

    def _make_database(self, member: Member) -> None:
        admin = password()
        member.say("DROP USER IF EXISTS root@'127.0.0.1', root@'::1'; CREATE DATABASE portiere; "
                   f"CREATE USER portiere IDENTIFIED BY '{self.secret}'; GRANT ALL ON portiere.* TO portiere; "
                   f"DROP USER IF EXISTS ''@localhost, ''@'{os.uname().nodename}'; "
                   f"ALTER USER root@localhost IDENTIFIED BY '{admin}'")
        self.admin = admin


def example() -> dict[str, dict[str, str]]:
    """Returns the settings of deploy/galera.cnf by section, without its addresses and paths, which have to be there."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string((ROOT / "deploy" / "galera.cnf").read_text())
    sections = {name: dict(parser[name]) for name in parser.sections()}
    if missing := PLACES - sections["mariadbd"].keys():
        raise Trouble(f"deploy/galera.cnf does not say {', '.join(sorted(missing))}")
    sections["mariadbd"] = {name: value for name, value in sections["mariadbd"].items() if name not in PLACES}
    return sections


def library() -> str:
    for path in LIBRARIES:
        if Path(path).exists():
            return path
    raise Trouble("the Galera library is not installed: apt-get install galera-4")


# The faults.

def cut_off(cluster: Galera, chance: random.Random) -> Strike:
    """The active node no longer hears the others, nor they it; Portiere still reaches it."""
    member, at = cluster.active(), time.monotonic()
    isolate(cluster, member, 1)
    return Strike(f"{member.name} cut off", at, cluster.without(member), lambda: isolate(cluster, member, 0))


def isolate(cluster: Galera, member: Member, how: int) -> None:
    """1: the provider drops what the others send and sends them nothing; 0: this ends."""
    if member.say(f"SET GLOBAL wsrep_provider_options = 'gmcast.isolate={how}'", cluster.admin) is None:
        raise Trouble(f"{member.name} does not take gmcast.isolate={how}")
