"""PostgreSQL under Patroni: a primary, a standby that confirms its commits, a third that can replace that standby, and
etcd.

Strict synchronous replication needs the third: with only two, writes stop while one of them is gone.
"""

import json
import random
import signal
import time
import urllib.error
import urllib.request
from pathlib import Path

from databases_lib import postgres
from databases_lib.folder import free_port

from . import nodes
from .place import Place, Process, Strike, Trouble, give, kill, password, run, send, tool, tree, wait_until

USER = "postgres"
ADDRESSES = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
STARTED_WITHIN_S = 60
WHOLE_WITHIN_S = 120

# Patroni's own minimum: a lease of 20 s is the shortest, and so the longest wait for a dead primary.
TIMES = {"ttl": 20, "loop_wait": 1, "retry_timeout": 3, "primary_start_timeout": 0}

PARAMETERS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "shared_buffers": "64MB",
    "max_connections": 100,
    "wal_keep_size": "256MB",
    "wal_log_hints": "on",
    # A standby that lost its primary contacts the next one soon: strict replication writes nothing until then.
    "wal_retrieve_retry_interval": "500ms",
}


class Member:
    """A PostgreSQL server with its Patroni."""

    def __init__(self, place: Place, number: int):
        self.name = f"pg{number + 1}"
        self.address = ADDRESSES[number]
        self.port = free_port(self.address)
        self.api = f"{self.address}:{free_port(self.address)}"
        self.folder = place.room(self.name, USER)
        self.patroni: Process | None = None

    def start(self, place: Place) -> None:
        file = self.folder / "patroni.yml"
        self.patroni = place.start(self.name, [tool("patroni", "patroni"), file], USER)

    def postmaster(self) -> list[int]:
        """Returns PostgreSQL's processes. They are not children of Patroni, and outlive it."""
        try:
            pid = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError, IndexError):
            return []
        return tree(pid) if str(self.folder).encode() in command else []

    def everything(self) -> list[int]:
        return [*(tree(self.patroni.pid) if self.patroni and self.patroni.runs() else []), *self.postmaster()]


class Patroni:
    """The cluster."""

    def __init__(self, place: Place, synchronous: bool):
        self.place = place
        self.synchronous = synchronous
        self.admin, self.secret = password(), password()
        self.members = [Member(place, number) for number in range(len(ADDRESSES))]
        self._start_etcd()
        self._configure()
        for member in self.members:
            place.also_end(member.postmaster)
            member.start(place)
            # The first creates the cluster, the others copy it.
            self.wait_for_primary()
        self.wait_until_whole()
        self._make_database()

    @property
    def urls(self) -> list[str]:
        """Returns a URL for each node of Portiere."""
        hosts = ",".join(f"{member.address}:{member.port}" for member in self.members)
        return [f"postgres://portiere:{self.secret}@{hosts}/portiere"] * nodes.COUNT

    def primary(self) -> Member | None:
        """Returns the member that has the lock and reports that it is the primary."""
        for member in self.members:
            if self._ask(member, "/primary") is not None:
                return member
        return None

    def wait_for_primary(self) -> Member:
        """Waits for `primary`, on a machine where its answer may be late."""
        return wait_until("Patroni has a primary", STARTED_WITHIN_S, self.primary)

    def is_whole(self) -> bool:
        """Returns whether there is one primary, all others stream from it, and one confirms its commits."""
        primary = self.primary()
        found = self._ask(primary, "/cluster") if primary else None
        if found is None or len(found["members"]) != len(self.members):
            return False
        roles = sorted(member["role"] for member in found["members"])
        states = {member["state"] for member in found["members"]}
        timelines = {member.get("timeline") for member in found["members"]}
        wanted = ["leader", "replica", "sync_standby"] if self.synchronous else ["leader", "replica", "replica"]
        return roles == wanted and states <= {"running", "streaming"} and len(timelines) == 1

    def wait_until_whole(self) -> None:
        wait_until("the Patroni cluster is whole", WHOLE_WITHIN_S, self.is_whole)

    def switch(self, old: Member) -> str:
        """Requests a planned change of the primary."""
        standby = "sync_standby" if self.synchronous else "replica"

        def successor() -> str | None:
            found = self._ask(old, "/cluster") or {"members": []}
            return next((member["name"] for member in found["members"] if member["role"] == standby), None)
        new = wait_until("Patroni has a standby", STARTED_WITHIN_S, successor)
        if self._ask(old, "/switchover", {"leader": old.name, "candidate": new}) is None:
            raise Trouble(f"Patroni does not switch from {old.name} to {new}")
        return f"switchover from {old.name} to {new}"

    def kill(self, member: Member) -> None:
        """kill -9 of PostgreSQL and Patroni, as if the machine were gone."""
        kill(member.everything())

    def pause(self, member: Member) -> None:
        send(member.everything(), signal.SIGSTOP)

    def wake(self, member: Member) -> None:
        send(member.everything(), signal.SIGCONT)

    def hold_back(self, member: Member) -> None:
        """Stops this primary from sending to its standbys, as if the network between them were slow."""
        found = run(self._psql(member, "SELECT pid FROM pg_stat_replication"))
        send([int(line) for line in found.split()], signal.SIGSTOP)

    def _start_etcd(self) -> None:
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self.etcd = client.removeprefix("http://")
        self.place.start("etcd", [
            tool("etcd", "etcd-server"), "--data-dir", self.place.room("etcd", "etcd"),
            "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
            "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}", "--enable-v2",
        ], "etcd")
        wait_until("etcd answers", STARTED_WITHIN_S, lambda: ask(f"{client}/health"))

    def _configure(self) -> None:
        parameters = PARAMETERS | {"max_wal_senders": 10}
        dcs = TIMES | {
            "maximum_lag_on_failover": 1 << 30,
            "synchronous_mode": self.synchronous,
            "synchronous_mode_strict": self.synchronous,
            "postgresql": {"use_pg_rewind": True, "parameters": parameters},
        }
        initdb = ["data-checksums", {"encoding": "UTF8"}, {"locale": "C.UTF-8"}, {"auth": "scram-sha-256"}]
        for member in self.members:
            file = member.folder / "patroni.yml"
            # JSON is valid YAML.
            file.write_text(json.dumps({
                "scope": "chaos",
                "namespace": "/portiere/",
                "name": member.name,
                "restapi": {"listen": member.api, "connect_address": member.api},
                # With the older API Patroni says whose lock it extends. With the newer one, a Patroni (3.0.2) that
                # slept through its lease and wakes up between two steps overwrites the lock of a primary promoted
                # since.
                "etcd": {"host": self.etcd},
                "bootstrap": {"dcs": dcs, "initdb": initdb},
                "postgresql": self._server(member),
                "watchdog": {"mode": "off"},
            }, indent=1))
            file.chmod(0o600)
            give(file, USER)

    def _server(self, member: Member) -> dict:
        own = f"{member.address}:{member.port}"
        login = {"username": USER, "password": self.admin}
        return {
            "listen": own,
            "connect_address": own,
            "data_dir": str(member.folder / "data"),
            "bin_dir": str(Path(postgres.tool("initdb")).parent),
            "pgpass": str(member.folder / "pgpass"),
            "authentication": {"superuser": login, "replication": login, "rewind": login},
            "parameters": {"unix_socket_directories": str(member.folder)},
            "pg_hba": ["host all all 127.0.0.0/8 scram-sha-256", "host replication all 127.0.0.0/8 scram-sha-256"],
        }

    def _make_database(self) -> None:
        for statement in (
            f"CREATE ROLE portiere LOGIN PASSWORD '{self.secret}' IN ROLE pg_monitor",
            "CREATE DATABASE portiere OWNER portiere",
        ):
            run(self._psql(self.wait_for_primary(), statement))

    def _psql(self, member: Member, statement: str) -> list[str]:
        login = f"postgres://{USER}:{self.admin}@{member.address}:{member.port}/postgres"
        return [postgres.tool("psql"), login, "-X", "-q", "-A", "-t", "-c", statement]

    def _ask(self, member: Member, path: str, body: dict | None = None):
        return ask(f"http://{member.api}{path}", body)


def ask(url: str, body: dict | None = None):
    """Returns an interface's answer of status 200, as JSON or text; otherwise None."""
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data), timeout=30 if data else 2) as answer:
            text = answer.read().decode()
    except (OSError, urllib.error.HTTPError):
        return None
    try:
        return json.loads(text) or True
    except ValueError:
        return text or True


# The faults.

def kill_machine(cluster: Patroni, chance: random.Random) -> Strike:
    """The primary and its Patroni die; they are restarted later."""
    member, at = cluster.wait_for_primary(), time.monotonic()
    cluster.kill(member)
    return Strike(f"{member.name} killed with its Patroni", at, another_than(cluster, member), lambda: member.start(cluster.place))


def kill_postgres(cluster: Patroni, chance: random.Random) -> Strike:
    """Only PostgreSQL dies; its Patroni sees that, and lets another member take over."""
    member, at = cluster.wait_for_primary(), time.monotonic()
    kill(member.postmaster())
    return Strike(f"{member.name} killed", at, another_than(cluster, member))


def switch(cluster: Patroni, chance: random.Random) -> Strike:
    old, at = cluster.wait_for_primary(), time.monotonic()
    return Strike(cluster.switch(old), at, another_than(cluster, old))


def pause(cluster: Patroni, chance: random.Random) -> Strike:
    """The primary sleeps, another takes over, and it wakes up believing that it is still the primary."""
    member, at = cluster.wait_for_primary(), time.monotonic()
    cluster.pause(member)
    return Strike(f"{member.name} paused", at, another_than(cluster, member), lambda: cluster.wake(member))


def kill_behind(cluster: Patroni, chance: random.Random) -> Strike:
    """The primary dies while its standbys lag."""
    member, lag = cluster.wait_for_primary(), chance.uniform(0.3, 1.5)
    cluster.hold_back(member)
    time.sleep(lag)
    at = time.monotonic()
    cluster.kill(member)
    what = f"{member.name} killed, standbys {lag:.1f} s behind"
    return Strike(what, at, another_than(cluster, member), lambda: member.start(cluster.place))


def another_than(cluster: Patroni, member: Member):
    """Returns a function that tells whether another member has the lock."""
    return lambda: cluster.primary() not in (None, member)
