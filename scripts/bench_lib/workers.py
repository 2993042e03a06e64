"""Hash workers beside a server that has one core: what each of them adds with a quarter of another core."""

import json
import os
import subprocess
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

from . import machine
from .measures import Bench
from databases_lib.folder import free_port

from .place import PASSWORD, Place
from .programs import PORTIERE, Failed, Server, load, run

# The most workers, and the share of a core that each may use.
MOST = 4
SHARE = 0.25
# Concurrent users: enough for every core to hash all the time.
USERS = 60
# The number of accounts.
PEOPLE = 150
# How long workers may take to connect.
PATIENCE = 30


def workers(bench: Bench, _: Place) -> None:
    """Measures sign-ins per second with none to four workers."""
    if (os.cpu_count() or 1) < 2:
        raise Failed("the server and its workers need a core each")
    folder = bench.folder / "workers"
    settings = secrets(folder) | {"PORTIERE_WORKERS_LISTEN": f"127.0.0.1:{free_port()}", "PORTIERE_HASH_MAX_WAIT": "60s"}
    bench.settings.append("for the measure `workers`: hash.max_wait = 60s, a pepper and a binding key")
    place = Place(folder / "place").make(1, 1, settings)
    rates: dict[int, list[float]] = {count: [] for count in range(MOST + 1)}
    shares: dict[int, list[float]] = {count: [] for count in rates}
    with ExitStack() as open_until_the_end:
        cages = [open_until_the_end.enter_context(machine.Cage(f"portiere-bench-{os.getpid()}-{at}", SHARE))
                 for at in range(MOST)]
        with Server(place.data, settings, core=0) as server:
            admit(server, place)
            server.settle()
            homes = [enroll(server, settings, folder / f"worker-{at}") for at in range(MOST)]
            for turn in range(bench.rounds):
                for count in rates:
                    rate, share = measure(bench, place, server, list(zip(homes, cages))[:count])
                    rates[count].append(rate)
                    shares[count].append(share)
                    bench.say(f"round {turn + 1}, {count} workers: {rate:.1f} sign-ins/s, {share:.0f} % of the hashes theirs")
    for count in range(1, MOST + 1):
        gains = [with_them / without for with_them, without in zip(rates[count], rates[0])]
        # At best a worker hashes a quarter of what the server's own core does; half of that is required.
        bench.add(f"sign-ins with {count} workers of a quarter of a core, beside none", gains, "x",
                  least=1 + count * SHARE / 2, reference=f"{sum(shares[count]) / len(shares[count]):.0f} % of the hashes theirs")


def measure(bench: Bench, place: Place, server: Server, staff: list[tuple[Path, machine.Cage]]) -> tuple[float, float]:
    """Returns sign-ins per second beside these workers, and the share of the hashes that they computed."""
    started = []
    try:
        for home, cage in staff:
            command = [PORTIERE, "verifier", "serve", "--threads", "1", "--folder", home]
            started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            cage.put(started[-1].pid)
            os.sched_setaffinity(started[-1].pid, {1})
        wait_for(server, len(staff))
        before = status(server)
        report = load(server, "w1", vus=USERS, seconds=bench.seconds, arguments=place.arguments("web-es256"))
        after = status(server)
    finally:
        for process in started:
            process.kill()
            process.wait()
    done = max(1, after["done"] - before["done"])
    return report["iterations_per_second"], 100 * (after["done_by_workers"] - before["done_by_workers"]) / done


def admit(server: Server, place: Place) -> None:
    """Adds people whose hashes workers can compute: a hash is bound to its account, so one cannot serve for all."""
    names = [f"person-{number}" for number in range(PEOPLE)]
    for name in names:
        run([PORTIERE, "user", "add", name, "--password-stdin", "--data", server.data], PASSWORD)
    place.people.write_text("".join(f"{name}:{PASSWORD}\n" for name in names))


def secrets(folder: Path) -> dict[str, str]:
    """Creates what a server needs before it lets others hash."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for what, name in (("pepper", "PORTIERE_HASH_PEPPERS"), ("binding", "PORTIERE_HASH_BINDING_KEYS")):
        file = folder / what
        file.unlink(missing_ok=True)
        run([PORTIERE, "hash", what, "bench", file])
        found[name] = f"bench:{file}"
    return found


def enroll(server: Server, settings: dict[str, str], home: Path) -> Path:
    """Enrolls a worker at the server; returns its folder."""
    if home.exists():
        for file in home.iterdir():
            file.unlink()
        home.rmdir()
    told = run([PORTIERE, "verifier", "token", "--json", "--data", server.data])
    run([PORTIERE, "verifier", "enroll", "--server", settings["PORTIERE_WORKERS_LISTEN"], "--name", home.name, "--folder", home,
         "--token", json.loads(told)["token"]])
    return home


def status(server: Server) -> dict:
    return json.loads(run([PORTIERE, "verifier", "status", "--json", "--data", server.data]))


def wait_for(server: Server, count: int) -> None:
    """Waits until this many workers are connected, and none that is gone."""
    end = time.monotonic() + PATIENCE
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/readyz", timeout=5) as answer:
            if json.load(answer)["hashing"]["workers"] == count:
                return
        if time.monotonic() > end:
            raise Failed(f"there are not {count} workers after {PATIENCE} s")
        time.sleep(0.1)
