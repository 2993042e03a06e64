"""Every scenario, and what Portiere promises in it."""

from dataclasses import dataclass

from . import galera, group, members, patroni, single


@dataclass(frozen=True)
class Promise:
    """What holds for everything that was acknowledged."""

    # What a node says of it, on `/readyz` and when it starts.
    said: str
    # It is there: accounts, sessions, refresh tokens.
    kept: bool
    # What ended stays ended: codes that were redeemed, tokens that were rotated or revoked, sign-outs, disabled accounts.
    ended: bool


# The classes of `/readyz`, after docs/guide/scaling.md, "What a write is worth".
PROMISES = {
    "A": Promise("nothing acknowledged is lost over failover", kept=True, ended=True),
    # As it does when a process dies.
    "B": Promise("nothing acknowledged is lost while the disk survives", kept=True, ended=True),
    # The journal and the fence keep what ended.
    "C": Promise("a failure of the database server may undo the last writes", kept=False, ended=True),
}


@dataclass(frozen=True)
class Scenario:
    kind: str
    make: object
    # What happens, each round the next.
    faults: tuple
    # Whether a node of Portiere dies too, and comes back when all is mended: what only it remembers is waited for.
    loses_node: bool = False
    # Whether an operator gives up what that node remembers, before it returns after all.
    gives_up: bool = False
    # Losses that the nodes are told to accept.
    accepts: str = ""
    # What they are told of the server's replication.
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
    """Where MYSQL_BIN is the folder with its programs."""
    return single.Single(place, "mysql")


def forgetful_postgres(place):
    """What it acknowledged in the last moments is not on its disk."""
    return single.Single(place, "postgres", {"synchronous_commit": "off", "wal_writer_delay": "2s"})


def forgetful_mariadb(place):
    return single.Single(place, "mariadb", {"innodb-flush-log-at-trx-commit": "0"})


def forgetful_mysql(place):
    return single.Single(place, "mysql", {"innodb-flush-log-at-trx-commit": "0"})


SCENARIOS = {
    "patroni-kill": Scenario("A", synchronous, (patroni.kill_machine, patroni.kill_postgres), replication="strict"),
    "patroni-switchover": Scenario("A", synchronous, (patroni.switch,), replication="strict"),
    "patroni-pause": Scenario("A", synchronous, (patroni.pause,), replication="strict"),
    # The same servers, of which nobody said that they never go on alone.
    "patroni-unsaid": Scenario("C", synchronous, (patroni.kill_machine, patroni.switch)),
    "patroni-behind": Scenario("C", asynchronous, (patroni.kill_behind,)),
    "patroni-behind-without-node": Scenario("C", asynchronous, (patroni.kill_behind,), loses_node=True),
    "patroni-behind-given-up": Scenario("C", asynchronous, (patroni.kill_behind,), loses_node=True, gives_up=True),
    "galera-kill": Scenario("C", galera.Galera, (members.kill_active,)),
    "galera-cut": Scenario("C", galera.Galera, (galera.cut_off,)),
    "galera-pause": Scenario("C", galera.Galera, (members.pause,)),
    # Two nodes that each found another member fit, as after one of them was started anew.
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
