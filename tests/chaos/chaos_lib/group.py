"""Three MySQL servers in a group with a single primary (Group Replication)."""

import uuid

from databases_lib import mysql
from databases_lib.folder import free_port

from .members import ADDRESSES, USER, Member, Members, must_run
from .place import Place, Trouble, give, password, run, wait_until

STARTED_WITHIN_S = 180

# Settings that save memory; the rest is MySQL's default, so a primary that is cut off waits forever.
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


class Node(Member):
    """One server."""

    @property
    def server(self) -> str:
        return mysql.tool("mysqld")

    @property
    def client(self) -> str:
        return mysql.tool("mysql")

    def __init__(self, place: Place, number: int):
        super().__init__(place, number)
        self.number = number + 1
        # For traffic among themselves they only accept addresses that the machine has.
        self.group = f"127.0.0.1:{free_port()}"

    def install(self) -> None:
        run([mysql.tool("mysqld"), "--no-defaults", f"--datadir={self.folder / 'data'}", "--initialize-insecure"], USER)

    def configure(self, name: str, members: list["Node"]) -> None:
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

    def start_again(self, place: Place) -> None:
        """Restarts it; it rejoins the group by itself."""
        self.start(place, "--group-replication-start-on-boot=ON")


class Group(Members):
    """The group."""

    within = STARTED_WITHIN_S

    def __init__(self, place: Place):
        self.place = place
        self.admin, self.secret = password(), password()
        self.members = [Node(place, number) for number in range(len(ADDRESSES))]
        name = str(uuid.uuid4())
        for member in self.members:
            member.install()
            member.configure(name, self.members)
            member.start(place)
        for member in self.members:
            self._join(member)

    def is_ready(self, member: Member, size: int) -> bool:
        must_run(member)
        said = member.say("SELECT member_state, count(*) FROM performance_schema.replication_group_members GROUP BY member_state",
                          self.admin)
        return said == f"ONLINE\t{size}\n"

    def is_going_on(self, others: list[Member]) -> bool:
        return super().is_going_on(others) and any(map(self.is_primary, others))

    def is_primary(self, member: Member) -> bool:
        return member.say("SELECT @@super_read_only", self.admin) == "0\n"

    def _join(self, member: Member) -> None:
        """Lets a member join; the first one creates the group."""
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
