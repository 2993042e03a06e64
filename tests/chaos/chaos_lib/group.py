"""Three MySQL servers in a group of which one is written to (Group Replication)."""

import os
import random
import signal
import subprocess
import time
import uuid

from databases_lib import mysql
from databases_lib.folder import free_port

from .place import Place, Process, Strike, Trouble, as_user, give, password, run, send, tree, wait_until

USER = "mysql"
ADDRESSES = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
STARTED_WITHIN_S = 180

# What takes memory; the rest is MySQL's default, a primary that is cut off waits for ever included.
SETTINGS = {
    "innodb-buffer-pool-size": "64M",
    "innodb-redo-log-capacity": "64M",
    "max-connections": "200",
    "mysqlx": "OFF",
    "secure-file-priv": "NULL",
    "gtid-mode": "ON",
    "enforce-gtid-consistency": "ON",
    "log-bin": "binlog",
    "plugin-load-add": "group_replication.so",
    "group-replication-start-on-boot": "OFF",
    "group-replication-ip-allowlist": "127.0.0.0/8",
    "group-replication-recovery-get-public-key": "ON",
}


class Member:
    """One server."""

    def __init__(self, place: Place, number: int):
        self.name, self.number = f"db{number + 1}", number + 1
        self.address = ADDRESSES[number]
        # Among themselves they take only addresses that the machine has.
        self.port, self.group = free_port(self.address), f"127.0.0.1:{free_port()}"
        self.folder = place.room(self.name, USER)
        self.process: Process | None = None

    def install(self) -> None:
        run([mysql.tool("mysqld"), "--no-defaults", f"--datadir={self.folder / 'data'}", "--initialize-insecure"], USER)

    def configure(self, name: str, members: list["Member"]) -> None:
        settings = SETTINGS | {
            "bind-address": self.address,
            "port": self.port,
            "report-host": self.address,
            "server-id": self.number,
            "datadir": self.folder / "data",
            "socket": self.folder / "socket",
            "pid-file": self.folder / "mysqld.pid",
            "group-replication-group-name": name,
            "group-replication-local-address": self.group,
            "group-replication-group-seeds": ",".join(member.group for member in members),
        }
        file = self.folder / "server.cnf"
        file.write_text("\n".join(["[mysqld]", *(f"{name} = {value}" for name, value in settings.items()), ""]))
        give(file, USER)

    def start(self, place: Place, *options: str) -> None:
        words = [mysql.tool("mysqld"), f"--defaults-file={self.folder / 'server.cnf'}", *options]
        self.process = place.start(self.name, words, USER)

    def start_again(self, place: Place) -> None:
        """It joins the others by itself."""
        self.start(place, "--group-replication-start-on-boot=ON")

    def say(self, statement: str, secret: str = "") -> str | None:
        """What the server answers to its root, or None."""
        words = [mysql.tool("mysql"), "--no-defaults", f"--socket={self.folder / 'socket'}", "--user=root", "-N", "-B",
                 "--connect-timeout=20", "-e", statement]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=os.environ | {"MYSQL_PWD": secret},
                                  **as_user(USER))
        except subprocess.TimeoutExpired:
            return None
        return done.stdout if done.returncode == 0 else None


class Group:
    """The group."""

    def __init__(self, place: Place):
        self.place = place
        self.admin, self.secret = password(), password()
        self.members = [Member(place, number) for number in range(len(ADDRESSES))]
        name = str(uuid.uuid4())
        for member in self.members:
            member.install()
            member.configure(name, self.members)
            member.start(place)
        for member in self.members:
            self._join(member)

    @property
    def urls(self) -> list[str]:
        """One for each node of Portiere."""
        hosts = ",".join(f"{member.address}:{member.port}" for member in self.members)
        return [f"mysql://portiere:{self.secret}@{hosts}/portiere"] * 2

    def is_whole(self) -> bool:
        return all(self.is_ready(member, len(self.members)) for member in self.members)

    def wait_until_whole(self) -> None:
        wait_until("the group is whole", STARTED_WITHIN_S, self.is_whole)

    def active(self) -> Member:
        """The one that Portiere uses."""
        def busiest() -> Member | None:
            sql = "SELECT count(*) FROM information_schema.processlist WHERE user = 'portiere'"
            counts = [int(member.say(sql, self.admin) or 0) for member in self.members]
            return self.members[counts.index(max(counts))] if any(counts) else None
        return wait_until("Portiere uses a member", STARTED_WITHIN_S, busiest)

    def is_ready(self, member: Member, size: int) -> bool:
        """Whether it sees so many members that work, and no other."""
        if member.process is None or not member.process.runs():
            raise Trouble(f"{member.name} ended; see {member.name}.log")
        said = member.say("SELECT member_state, count(*) FROM performance_schema.replication_group_members GROUP BY member_state",
                          self.admin)
        return said == f"ONLINE\t{size}\n"

    def is_primary(self, member: Member) -> bool:
        return member.say("SELECT @@super_read_only", self.admin) == "0\n"

    def _join(self, member: Member) -> None:
        """The first one makes the group."""
        wait_until(f"{member.name} is there", STARTED_WITHIN_S, lambda: member.say("SELECT 1"))
        self._tell(member, "SET SQL_LOG_BIN = 0; CREATE USER copier IDENTIFIED BY 'copier'; "
                   "GRANT REPLICATION SLAVE, BACKUP_ADMIN, CONNECTION_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO copier; "
                   f"ALTER USER root@localhost IDENTIFIED BY '{self.admin}'; SET SQL_LOG_BIN = 1; "
                   "CHANGE REPLICATION SOURCE TO SOURCE_USER = 'copier', SOURCE_PASSWORD = 'copier' "
                   "FOR CHANNEL 'group_replication_recovery'")
        if member is self.members[0]:
            self._tell(member, "SET GLOBAL group_replication_bootstrap_group = ON; START GROUP_REPLICATION; "
                       "SET GLOBAL group_replication_bootstrap_group = OFF; CREATE DATABASE portiere; "
                       f"CREATE USER portiere IDENTIFIED BY '{self.secret}'; GRANT ALL ON portiere.* TO portiere; "
                       "GRANT SELECT ON performance_schema.replication_group_members TO portiere", self.admin)
        else:
            self._tell(member, "START GROUP_REPLICATION", self.admin)
        count = self.members.index(member) + 1
        wait_until(f"{member.name} has joined", STARTED_WITHIN_S, lambda: self.is_ready(member, count))

    def _tell(self, member: Member, statements: str, secret: str = "") -> None:
        if member.say(statements, secret) is None:
            raise Trouble(f"{member.name} refused; see {member.name}.log")


# What happens to it.

def kill_active(cluster: Group, chance: random.Random) -> Strike:
    member, at = cluster.active(), time.monotonic()
    member.process.kill()
    return Strike(f"{member.name} killed", at, without(cluster, member), lambda: member.start_again(cluster.place))


def pause(cluster: Group, chance: random.Random) -> Strike:
    """The active one sleeps, the others go on without it, and it wakes up believing that it is written to: cut off from the others,
    until it has heard that they have left it."""
    member, at = cluster.active(), time.monotonic()
    send(tree(member.process.pid), signal.SIGSTOP)
    return Strike(f"{member.name} paused", at, without(cluster, member),
                  lambda: send(tree(member.process.pid), signal.SIGCONT))


def without(cluster: Group, member: Member):
    """Whether the others are a group of their own, and have somebody to write to."""
    others = [one for one in cluster.members if one is not member]
    return lambda: all(cluster.is_ready(one, len(others)) for one in others) and any(map(cluster.is_primary, others))
