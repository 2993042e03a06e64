"""Every scenario, and what Portiere promises in it."""

from dataclasses import dataclass

from . import galera, group, members, patroni, single


@dataclass(frozen=True)
class Promise:
    """What holds for everything that was acknowledged."""

    # How a node words it, on `/readyz` and when it starts.
    said: str
    # Accounts, sessions, refresh tokens still exist.
    kept: bool
    # What ended stays ended: redeemed codes, rotated or revoked tokens, sign-outs, disabled accounts.
    ended: bool


# The classes of `/readyz`, as in docs/guide/scaling.md, "What a write is worth".
PROMISES = {
    "A": Promise("zero-loss: nothing acknowledged is lost over failover", kept=True, ended=True),
    # This holds when a process dies.
    "B": Promise("durable: nothing acknowledged is lost while the disk survives", kept=True, ended=True),
    # The journal and the fence keep what ended.
    "C": Promise("bounded-loss: a failure of the database server may undo the last writes", kept=False, ended=True),
}


@dataclass(frozen=True)
class Scenario:
    kind: str
    make: object
    # The faults, one per round in turn.
    faults: tuple
    # Whether a node of Portiere dies too, and returns after the repair: the others wait for what only it remembers.
    loses_node: bool = False
    # Whether an operator gives up what that node remembers, before it returns after all.
    gives_up: bool = False
    # Losses that the nodes are configured to accept.
    accepts: str = ""
    # What the nodes are told about the server's replication.
    replication: str = "observed"


def synchronous(place):
    return patroni.Patroni(place, synchronous=True)


def asynchronous(place):
    return patroni.Patroni(place, synchronous=False)


def apart(place):
    return galera.Galera(place, apart=True)


def postgres(place):
    return single.Single(place, "postgres")


def mariadb(place):
    return single.Single(place, "mariadb")


def mysql(place):
    """Runs MySQL, if MYSQL_BIN names the folder with its programs."""
    return single.Single(place, "mysql")


def forgetful_postgres(place):
    """Runs a server whose last acknowledged commits are not on its disk."""
    return single.Single(place, "postgres", {"synchronous_commit": "off", "wal_writer_delay": "2s"})


def forgetful_mariadb(place):
    return single.Single(place, "mariadb", {"innodb-flush-log-at-trx-commit": "0"})


def forgetful_mysql(place):
    return single.Single(place, "mysql", {"innodb-flush-log-at-trx-commit": "0"})


SCENARIOS = {
    "patroni-kill": Scenario("A", synchronous, (patroni.kill_machine, patroni.kill_postgres), replication="strict"),
    "patroni-switchover": Scenario("A", synchronous, (patroni.switch,), replication="strict"),
    "patroni-pause": Scenario("A", synchronous, (patroni.pause,), replication="strict"),
    # The same servers, without the assurance that they never go on alone.
    "patroni-unsaid": Scenario("C", synchronous, (patroni.kill_machine, patroni.switch)),
    "patroni-behind": Scenario("C", asynchronous, (patroni.kill_behind,)),
    "patroni-behind-without-node": Scenario("C", asynchronous, (patroni.kill_behind,), loses_node=True),
    "patroni-behind-given-up": Scenario("C", asynchronous, (patroni.kill_behind,), loses_node=True, gives_up=True),
    "galera-kill": Scenario("C", galera.Galera, (members.kill_active,)),
    "galera-cut": Scenario("C", galera.Galera, (galera.cut_off,)),
    "galera-pause": Scenario("C", galera.Galera, (members.pause,)),
    # Two nodes that found different members usable, as after one of them was restarted.
    "galera-apart": Scenario("C", apart, (members.kill_active, members.pause)),
    "mysql-group-kill": Scenario("C", group.Group, (members.kill_active,)),
    "mysql-group-pause": Scenario("C", group.Group, (members.pause,)),
    "postgres-restart": Scenario("B", postgres, (single.restart,)),
    "mariadb-restart": Scenario("B", mariadb, (single.restart,)),
    "mysql-restart": Scenario("B", mysql, (single.restart,)),
    # The same server under the same name, which knows less than before.
    "postgres-forgets": Scenario("C", forgetful_postgres, (single.restart,), accepts="commits"),
    "mariadb-forgets": Scenario("C", forgetful_mariadb, (single.restart,), accepts="commits"),
    "mysql-forgets": Scenario("C", forgetful_mysql, (single.restart,), accepts="commits"),
}
