"""The same load on every engine: a file, PostgreSQL, MariaDB; one node and two; a distant database."""

import json
import os
import shutil
import statistics
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from .figures import number
from .measures import Bench
from .place import CLIENTS, PASSWORD, Place
from .programs import RELEASE, ROOT, Server, load, run

# People who sign in, and the database servers that are compared with the file.
PEOPLE = 50
SERVERS = ("postgres", "mariadb", *(["mysql"] if "MYSQL_BIN" in os.environ else []))
# The required share of two of them; for MySQL the result is only reported.
LEAST = {"postgres": 40, "mariadb": 40}
# An application's ID tokens are signed with RS256 if nothing else is said. With ES256, engines differ most: what a
# signature costs is the same with each.
APPLICATIONS = ("web-rs256", "web-es256")

# Milliseconds that are added to each round trip to a distant database.
FAR = 5


class Home(Place):
    """A folder for each node and, unless it is a file, a database that they share."""

    def __init__(self, folder: Path, settings: dict[str, str]):
        super().__init__(folder)
        self.settings = settings

    def make(self) -> "Home":
        """Creates it from nothing, through the command line."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        with self.node() as server:
            self._cli("user", "add", "user-0", "--password-stdin", stdin=PASSWORD)
            for at in range(1, PEOPLE):
                self._cli("user", "add", f"user-{at}", "--password-stdin", stdin=PASSWORD)
            for name, options in CLIENTS.items():
                made = json.loads(self._cli("client", "add", "--json", "--id", name, *options))
                self.secret(name).touch(mode=0o600)
                self.secret(name).write_text(made["client_secret"])
            self.people.write_text("".join(f"user-{at}:{PASSWORD}\n" for at in range(PEOPLE)))
            # This warms up what was just created, and adds rows to its tables.
            load(server, "w1", vus=20, seconds=3, arguments=[*self.arguments("web-es256"), "--no-password"])
        return self

    def node(self, number: int = 0, settings: dict[str, str] | None = None, url: str | None = None) -> Server:
        """Returns a node, each with a data folder and the same master key; all running nodes have one public URL."""
        data = self.data if number == 0 else self.folder / f"data-{number}"
        if number and not data.exists():
            data.mkdir(mode=0o700)
            shutil.copy(self.data / "master.key", data / "master.key")
        return Server(data, self.settings | (settings or {}), url=url)


class Databases:
    """Our own database servers."""

    def __init__(self, stack: ExitStack):
        # A folder that the users who run the servers can reach.
        self.folder = Path(tempfile.mkdtemp(prefix="portiere-engines."))
        self.folder.chmod(0o755)
        self.stack = stack
        stack.callback(shutil.rmtree, self.folder, ignore_errors=True)

    def home(self, kind: str, folder: Path) -> Home:
        settings = {} if kind == "sqlite" else {"PORTIERE_STORE_URL": self.empty(kind)}
        return Home(folder, settings).make()

    def empty(self, kind: str) -> str:
        """Returns the URL of an empty database, on a server that ends with the stack."""
        self._databases("up", kind, self.folder / kind)
        self.stack.callback(self._databases, "down", self.folder / kind)
        return self._databases("database", self.folder / kind, "portiere").strip()

    @staticmethod
    def _databases(*arguments) -> str:
        return run([ROOT / "scripts/databases", *arguments])


def behind(url: str, milliseconds: float, stack: ExitStack) -> str:
    """Returns the URL of the same database behind a proxy that delays every byte by this much per round trip."""
    before, _, place = url.rpartition("@")
    address, slash, rest = place.partition("/")
    command = [RELEASE / "examples" / "delay", "127.0.0.1:0", address, str(milliseconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    return f"{before}@{process.stdout.readline().strip()}{slash}{rest}"


def engines(bench: Bench, _: Place) -> None:
    """Measures W1 without password, refreshes and introspections on each engine, in turns."""
    with ExitStack() as stack:
        databases = Databases(stack)
        homes = {kind: databases.home(kind, bench.folder / f"engines-{kind}") for kind in ("sqlite", *SERVERS)}
        for client in APPLICATIONS:
            beside_sqlite(bench, homes, client)
        two_nodes(bench, homes["postgres"])
        for kind in SERVERS:
            distance(bench, homes[kind], stack, kind)


def beside_sqlite(bench: Bench, homes: dict[str, Home], client: str) -> None:
    """Measures W1 without password on each engine, in turns."""
    alg, rates = client.removeprefix("web-").upper(), {kind: [] for kind in homes}
    for turn in range(bench.rounds):
        for kind, home in homes.items():
            with home.node() as server:
                report = bench.measure(server, home, client, "w1", "--no-password")
            rates[kind].append(report["iterations_per_second"])
        told = ", ".join(f"{kind} {runs[-1]:.0f}" for kind, runs in rates.items())
        bench.say(f"W1 without password, {alg}, round {turn + 1}: {told} flows/s")
    for kind in SERVERS:
        shares = [100 * there / here for here, there in zip(rates["sqlite"], rates[kind])]
        bench.add(f"W1 without password, {alg}, {kind} beside SQLite", shares, "%", least=LEAST.get(kind, 0),
                  reference=f"{statistics.median(rates[kind]):.0f} of {statistics.median(rates['sqlite']):.0f} flows/s")


def two_nodes(bench: Bench, home: Home) -> None:
    """Compares two load generators on one node with one on each of two nodes."""
    shares, evenness = [], []
    for _ in range(bench.rounds):
        with home.node() as server:
            one = sum(halves(bench, home, (server, server)))
        with home.node() as first, home.node(1, url=first.url) as second:
            rates = halves(bench, home, (first, second))
        shares.append(100 * sum(rates) / one)
        evenness.append(100 * min(rates) / max(rates))
        bench.say(f"two nodes: {' and '.join(f'{rate:.0f}' for rate in rates)} beside {one:.0f} flows/s of one")
    bench.add("two nodes on PostgreSQL beside one", shares, "%", least=100)
    bench.add("the slower of two nodes beside the other", evenness, "%", least=80)


def halves(bench: Bench, home: Home, servers: tuple[Server, Server]) -> list[float]:
    """Returns the flows per second of ten users at each of these servers."""
    def half(server: Server) -> float:
        return bench.measure(server, home, "web-es256", "w1", "--no-password", vus=10)["iterations_per_second"]

    with ThreadPoolExecutor(len(servers)) as both:
        return list(both.map(half, servers))


def distance(bench: Bench, home: Home, stack: ExitStack, kind: str) -> None:
    """Measures refreshes with the database near and far. Both go through the delaying proxy, which takes its share of
    the cores."""
    url = home.settings["PORTIERE_STORE_URL"]
    near, away = ({"PORTIERE_STORE_URL": behind(url, late, stack)} for late in (0, FAR))
    kept, medians, reports = [], [], []
    for _ in range(bench.rounds):
        rates = []
        for settings in ({}, near, away):
            with home.node(settings=settings) as server:
                many = bench.measure(server, home, "web-es256", "refresh", vus=200)
                rates.append(many["iterations_per_second"])
                if settings is away:
                    reports.append(bench.measure(server, home, "web-es256", "refresh", vus=1))
        kept.append(100 * rates[2] / rates[1])
        medians.append(reports[-1]["latency"]["p50"])
        bench.say(f"{kind}, {FAR} ms away: {rates[2]:.0f} beside {rates[1]:.0f} refreshes/s at 200 users "
                  f"({rates[0]:.0f} with nothing between); one user waits {number(medians[-1])} ms")
    target = {"least": 80} if kind == "postgres" else {"least": 0}
    bench.add(f"refresh at 200 users, {kind} {FAR} ms away beside near", kept, "%", **target)
    most = 20 if kind == "postgres" else 1000
    bench.add(f"refresh, median, {kind} {FAR} ms away", medians, "ms", most=most, reports=reports)
