"""Several servers of the MySQL family, of which Portiere uses one at a time."""

import os
import random
import signal
import subprocess
import time

from databases_lib.folder import free_port

from .place import Place, Process, Strike, Trouble, as_user, send, tree, wait_until

USER = "mysql"
ADDRESSES = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
CONNECTIONS = "SELECT count(*) FROM information_schema.processlist WHERE user = 'portiere'"


class Member:
    """One server. `server` and `client` are the programs."""

    server: str
    client: str

    def __init__(self, place: Place, number: int):
        self.name = f"db{number + 1}"
        self.address = ADDRESSES[number]
        self.port = free_port(self.address)
        self.folder = place.room(self.name, USER)
        self.process: Process | None = None

    def start(self, place: Place, *options: str) -> None:
        words = [self.server, f"--defaults-file={self.folder / 'server.cnf'}", *options]
        self.process = place.start(self.name, words, USER)

    def say(self, statement: str, secret: str = "") -> str | None:
        """Returns the server's answer to its root user, or None."""
        words = [self.client, "--no-defaults", f"--socket={self.folder / 'socket'}", "--user=root", "-N", "-B",
                 "--connect-timeout=20", "-e", statement]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=os.environ | {"MYSQL_PWD": secret},
                                  **as_user(USER))
        except subprocess.TimeoutExpired:
            return None
        return done.stdout if done.returncode == 0 else None


class Members:
    """All servers. `is_ready` tells whether they are together; each kind says how long it may take to start."""

    within: float
    place: Place
    members: list
    admin: str
    secret: str

    @property
    def urls(self) -> list[str]:
        """Returns a URL for each node of Portiere."""
        hosts = [",".join(f"{member.address}:{member.port}" for member in order) for order in self.orders()]
        return [f"mysql://portiere:{self.secret}@{one}/portiere" for one in hosts]

    def orders(self) -> list[list]:
        """Returns the order in which each node of Portiere lists them."""
        return [self.members, self.members]

    def is_whole(self) -> bool:
        return all(self.is_ready(member, len(self.members)) for member in self.members)

    def wait_until_whole(self) -> None:
        wait_until("all members are together", self.within, self.is_whole)

    def active(self):
        """Returns the member that Portiere uses."""
        def busiest():
            counts = [self.connections(member) for member in self.members]
            return self.members[counts.index(max(counts))] if any(counts) else None
        return wait_until("Portiere uses a member", self.within, busiest)

    def connections(self, member: Member) -> int:
        return int(member.say(CONNECTIONS, self.admin) or 0)

    def is_ready(self, member: Member, size: int) -> bool:
        """Returns whether it sees exactly this many working members."""
        raise NotImplementedError

    def is_going_on(self, others: list[Member]) -> bool:
        """Returns whether these are together without the rest, and accept writes."""
        return all(self.is_ready(one, len(others)) for one in others)

    def without(self, member: Member):
        others = [one for one in self.members if one is not member]
        return lambda: self.is_going_on(others)


def must_run(member: Member) -> None:
    if member.process is None or not member.process.runs():
        raise Trouble(f"{member.name} ended; see {member.name}.log")


# The faults.

def kill_active(cluster: Members, chance: random.Random) -> Strike:
    member, at = cluster.active(), time.monotonic()
    member.process.kill()
    return Strike(f"{member.name} killed", at, cluster.without(member), lambda: member.start_again(cluster.place))


def pause(cluster: Members, chance: random.Random) -> Strike:
    """The active member sleeps, the others go on without it, and it wakes up believing that it is still one of them."""
    member, at = cluster.active(), time.monotonic()
    send(tree(member.process.pid), signal.SIGSTOP)
    return Strike(f"{member.name} paused", at, cluster.without(member),
                  lambda: send(tree(member.process.pid), signal.SIGCONT))
