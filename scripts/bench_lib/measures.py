"""The figures on a small file: starts, memory, sign-ins, requests, writers."""

import json
import shutil
import statistics
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import machine, programs
from .figures import Figure, number
from .place import Place
from .programs import PORTIERE, RELEASE, Failed, Server, load, pool_rate

# Requests per second of server CPU: title, workload, application, target, and the best of five other providers on the
# reference machine.
REQUESTS = {
    "jwks": ("JWKS", "jwks", "web-es256", 50_000, 34_600),
    "introspect": ("introspection", "introspect", "web-es256", 20_000, 5_200),
    "userinfo": ("userinfo", "userinfo", "web-es256", 20_000, 5_100),
    "client_credentials": ("client_credentials", "client_credentials", "service", 8_000, 1_370),
    "refresh": ("refresh, ES256 ID token", "refresh", "web-es256", 4_000, 310),
    "refresh-rs256": ("refresh, RS256 ID token", "refresh", "web-rs256", 2_200, 310),
}


@dataclass
class Bench:
    """A run: its settings, and its results."""

    folder: Path
    seconds: float
    rounds: int
    users: int
    pairs: int
    figures: list[Figure] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)

    def say(self, what: str) -> None:
        print(f"  {time.strftime('%H:%M:%S')}  {what}", flush=True)

    def add(self, name: str, runs: list[float], unit: str, *, reference: str = "", least: float | None = None,
            most: float | None = None, reports: list[dict] | None = None) -> None:
        """Adds a figure with its lower or upper target, and prints it."""
        target = least if least is not None else most
        assert target is not None
        figure = Figure(name, runs, unit, target, least is not None, reference, reports or [])
        self.figures.append(figure)
        self.say(f"{name}: {number(figure.value)} {unit}, {figure.verdict}")

    def measure(self, server: Server, place: Place, client: str, workload: str, *more, vus: int = 20) -> dict:
        """Runs the load generator once."""
        arguments = [*place.arguments(client), *more]
        return load(server, workload, vus=vus, seconds=self.seconds, arguments=arguments)


def start(bench: Bench, place: Place) -> None:
    """Measures the time from the start of the process to the first 200 of /readyz, and memory at rest."""
    new = Place(bench.folder / "new").data
    shutil.rmtree(new, ignore_errors=True)
    new.parent.mkdir(parents=True, exist_ok=True)
    with Server(new) as server:
        first = server.ready_ms
    bench.add("first start to ready", [first], "ms", most=2000)
    bench.add("later starts to ready, slowest", [max(starts(new))], "ms", most=150)
    with Server(place.data) as server:
        server.settle()
        idle = machine.rss_mib(server.pid)
        bench.add("idle memory after start", [idle], "MiB", most=30)
        load(server, "w1", vus=2, seconds=2, arguments=place.arguments("web-rs256"))
        passed, after = given_back(server)
        bench.add("idle memory after sign-ins", [after], "MiB", most=30,
                  reference=f"{idle:.1f} MiB before; lowest after {passed:.0f} s")


def given_back(server: Server) -> tuple[float, float]:
    """Returns the seconds until memory is lowest after the last sign-in, and how low it is. Hashing threads release
    theirs after ten seconds without work."""
    begun, low = time.monotonic(), (0.0, machine.rss_mib(server.pid))
    while time.monotonic() - begun < 30:
        time.sleep(1)
        now = machine.rss_mib(server.pid)
        if now < low[1] - 1:
            low = (time.monotonic() - begun, now)
    return low


def starts(data: Path, count: int = 5) -> list[float]:
    """Returns the milliseconds until ready of several starts on the same folder."""
    took = []
    for _ in range(count):
        with Server(data) as server:
            took.append(server.ready_ms)
    return took


def binary(bench: Bench, _: Place) -> None:
    if not machine.has_symbol_table(PORTIERE):
        raise Failed("the binary has no symbol table")
    bench.add("binary, with its symbol table", [PORTIERE.stat().st_size / 1e6], "MB", most=25)


def w1(bench: Bench, place: Place) -> None:
    """Compares sign-ins with a password with the rates of the hashing pool alone, and of the strongest library for one
    password at a time, just before and just after, in turns."""
    span = max(2.0, bench.seconds / 2)
    reports, alone = {20: [], 200: []}, {20: [], 200: []}
    before = hashing(span)
    with Server(place.data, patience(bench, before[0])) as server:
        for turn in range(bench.rounds):
            for vus in reports:
                reports[vus].append(bench.measure(server, place, "web-rs256", "w1", vus=vus))
                # If others share the machine, the pool may be slower than ten seconds ago.
                after = hashing(span)
                alone[vus].append([statistics.mean(pair) for pair in zip(before, after)])
                before = after
                pool, others = alone[vus][-1]
                bench.say(f"W1, round {turn + 1}: {reports[vus][-1]['iterations_per_second']:.1f}/s at {vus} users, "
                          f"pool alone {pool:.1f}/s, argon2-rust {others:.1f}/s")
    rates = {vus: [report["iterations_per_second"] for report in runs] for vus, runs in reports.items()}
    for vus, runs in rates.items():
        rate = statistics.median(runs)
        for at, (what, least) in enumerate((("the pool", 75), ("argon2-rust", 80))):
            others = [both[at] for both in alone[vus]]
            shares = [100 * run / other for run, other in zip(runs, others)]
            bench.add(f"W1, {vus} users: share of {what}", shares, "%", least=least, reports=[] if at else reports[vus],
                      reference=f"{rate:.1f} of {statistics.median(others):.1f} hashes/s alone")
        setbacks = sum(report["failed"] + report["refused"] for report in reports[vus])
        bench.add(f"W1, {vus} users: failed or refused", [setbacks], "", most=0,
                  reference=f"{sum(report['iterations'] for report in reports[vus]):,} done")
    bench.add("W1, 200 users beside 20", [100 * many / few for few, many in zip(rates[20], rates[200])], "%", least=90,
              reference=f"{statistics.median(rates[20]):.1f}/s at 20 users")


def hashing(span: float) -> tuple[float, float]:
    """Returns passwords per second of the pool, and of argon2-rust with one hasher kept per core."""
    return pool_rate(span), pool_rate(span, "argon2-rust")


def patience(bench: Bench, rate: float) -> dict[str, str]:
    """Extends the wait: two hundred users waiting for two cores may exceed the default."""
    wait = 200 / rate
    if wait <= 0.8 * 3:
        return {}
    budget = f"{int(wait * 3) + 1}s"
    bench.settings.append(f"hash.max_wait = {budget} for W1 (default 3s): 200 users at {rate:.0f} hashes/s wait {wait:.1f} s")
    return {"PORTIERE_HASH_MAX_WAIT": budget}


def session(bench: Bench, place: Place) -> None:
    """Measures the same flow with a session cookie instead of a password."""
    with Server(place.data) as server:
        reports = [bench.measure(server, place, "web-es256", "w1", "--no-password") for _ in range(bench.rounds)]
        rs256 = bench.measure(server, place, "web-rs256", "w1", "--no-password")
    bench.add("W1 without password", [report["iterations_per_second"] for report in reports], "flows/s", least=1000,
              reports=reports, reference=f"{rs256['iterations_per_second']:.0f} flows/s with RS256 ID tokens")


def requests(name: str):
    """Returns a measure of requests divided by the server's own CPU seconds."""
    title, workload, client, target, best = REQUESTS[name]

    def measure(bench: Bench, place: Place) -> None:
        with Server(place.data) as server:
            reports = [bench.measure(server, place, client, workload) for _ in range(bench.rounds)]
        rates = [report["server"]["requests_per_cpu_second"] for report in reports]
        bench.add(title, rates, "per CPU s", least=target, reports=reports,
                  reference=f"best of five other providers {best:,}")

    return measure


def generator(bench: Bench, _: Place) -> None:
    """Measures how many requests per second one core of the load generator makes to a provider that only answers."""
    server = subprocess.Popen([RELEASE / "examples" / "trivial"], stdout=subprocess.PIPE, text=True)
    try:
        target = server.stdout.readline().strip()
        command = [PORTIERE, "load", "jwks", "--json", "--target", target, "--vus", 20, "--duration", f"{bench.seconds}s",
                   "--warmup", "1s"]
        reports = [json.loads(programs.run(command))["runs"][0] for _ in range(bench.rounds)]
    finally:
        server.kill()
        server.wait()
    rates = [report["requests"] / report["seconds"] / report["generator_cores"] for report in reports]
    bench.add("load generator", rates, "per core", least=20_000, reports=reports, reference="a provider that only answers")


def writers(bench: Bench, _: Place) -> None:
    """Measures 64 writers of three-row batches through the store."""
    found = programs.writers(bench.folder)
    many = found["store, 64 rate"]
    bench.add("64 writers beside one at a time", [found["one at a time"]], "x", least=3,
              reference=f"{many:,.0f} and {found['store, one rate']:,.0f} batches/s")
    bench.add("64 writers beside plain SQLite", [found["plain SQLite"]], "%", least=75,
              reference=f"{many:,.0f} and {found['plain SQLite rate']:,.0f} batches/s")
