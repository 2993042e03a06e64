"""The figures that depend on password hashing: sign-ins with the parameters that other providers ship, the cost of a
sign-in outside the pool, and what other requests notice while every core hashes."""

import threading

from . import machine
from .figures import number
from .measures import Bench
from .place import Place
from .programs import Server, load, pool_rate

# The parameters of other providers: title, settings, a stored hash of PASSWORD (made by the server where it is None),
# the pool's parameters, the least flows per second, the best of others on the reference machine.
BCRYPT = "$2b$10$abcdefghijklmnopqrstuuAKyzz7z/BqWs0Ji.x36dVa/Fo5px.lC"
OTHERS = {
    "bcrypt 10": ({"PORTIERE_HASH_UPGRADE": "false"}, BCRYPT, (BCRYPT,), 100, 33),
    "Argon2id 7168/5": ({"PORTIERE_HASH_ARGON2_MEMORY_KIB": "7168", "PORTIERE_HASH_ARGON2_PASSES": "5"}, None,
                        (7168, 5, 1), 330, 55),
    "Argon2id 131072/4, 8 lanes": ({"PORTIERE_HASH_ARGON2_MEMORY_KIB": "131072", "PORTIERE_HASH_ARGON2_PASSES": "4",
                                    "PORTIERE_HASH_ARGON2_LANES": "8"}, None, (131072, 4, 8), 18, 3.0),
}

# As many people at a time as keep every core hashing. While other kinds of hashes are stored, each sign-in takes at least
# twice the time of the dearest, so that few people cannot use the cores: with bcrypt 10, 20 of them use three fifths.
CROWD = 200

# No sign-in is refused: a crowd waits for two cores.
PATIENT = {"PORTIERE_HASH_MAX_WAIT": "60s"}


def hashes(bench: Bench, _: Place) -> None:
    """Measures W1 with the parameters that other providers ship."""
    bench.settings.append("hash.max_wait = 60s and other parameters for the measure `hashes`")
    for title, (settings, stored, parameters, least, best) in OTHERS.items():
        place = Place(bench.folder / "others").make(1000, 1000, settings, stored)
        with Server(place.data, settings | PATIENT) as server:
            server.settle()
            reports = [bench.measure(server, place, "web-rs256", "w1", vus=CROWD) for _ in range(bench.rounds)]
        pool = pool_rate(max(2.0, bench.seconds / 2), *parameters)
        rates = [report["iterations_per_second"] for report in reports]
        setbacks = sum(report["failed"] + report["refused"] for report in reports)
        bench.add(f"W1 with {title}", rates, "flows/s", least=least, reports=reports,
                  reference=f"best of others {best}; pool alone {pool:.1f} hashes/s; {setbacks} failed or refused")


def overhead(bench: Bench, place: Place) -> None:
    """Measures the CPU time of a sign-in on all threads except those that hash."""
    for client, name, most in (("web-rs256", "RS256", 0.8), ("web-es256", "ES256", 0.5)):
        with Server(place.data, PATIENT) as server:
            server.settle()
            costs = [outside(bench, server, place, client) for _ in range(bench.rounds)]
        bench.add(f"CPU of a flow outside the pool, {name} ID tokens", costs, "ms", most=most)


def outside(bench: Bench, server: Server, place: Place, client: str) -> float:
    before = machine.threads_cpu_seconds(server.pid)
    report = bench.measure(server, place, client, "w1")
    spent = {name: after - before.get(name, 0) for name, after in machine.threads_cpu_seconds(server.pid).items()}
    hashing = sum(cpu for name, cpu in spent.items() if name.startswith("hasher-")) / sum(spent.values())
    return 1000 * report["server"]["cpu_seconds"] * (1 - hashing) / report["iterations"]


def light(bench: Bench, place: Place) -> None:
    """Measures light requests while 20 people at a time sign in, as fast as the cores hash."""
    with Server(place.data, PATIENT) as server:
        server.settle()
        for title, workload in (("introspection", "introspect"), ("JWKS", "jwks")):
            waits = []
            for _ in range(bench.rounds):
                span = bench.seconds + 4
                arguments = place.arguments("web-es256")
                crowd = threading.Thread(target=load, args=(server, "w1"),
                                         kwargs={"vus": 20, "seconds": span, "arguments": arguments})
                crowd.start()
                report = bench.measure(server, place, "web-es256", workload, "--pause", "20ms", vus=2)
                crowd.join()
                waits.append(report["latency"]["p99"])
            bench.add(f"{title} while every core hashes, p99", waits, "ms", most=10,
                      reference=f"{number(report['iterations_per_second'])} a second beside the sign-ins")

