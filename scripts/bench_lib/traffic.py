"""Session traffic: what a server does all day for people who are signed in."""

import json
import urllib.request

from .measures import Bench
from .overload import Peak
from .place import Place
from .programs import RELEASE, Server, run

USERS = 2000
# The length, as a multiple of the other measures' runs.
LENGTH = 30


def traffic(bench: Bench, place: Place) -> None:
    """Measures W2: 2,000 people with one request per second each, for five minutes."""
    with Server(place.data, {"PORTIERE_HASH_MAX_WAIT": "60s"}) as server:
        bench.settings.append("hash.max_wait = 60s for the measure `w2`: 2,000 people sign in at once before it begins")
        peak = Peak(server.pid, lambda: arena_mib(server))
        command = [RELEASE / "examples" / "load", "w2", "--json", "--target", server.url, "--server-pid", server.pid, "--vus", USERS,
                   "--duration", f"{LENGTH * bench.seconds:.0f}s", "--warmup", "5s", *place.arguments("house")]
        (report,) = json.loads(run(command))["runs"]
        most = peak.stop()
    done = f"{report['iterations']:,} done, {report['iterations_per_second']:.0f} a second"
    bench.add("W2, 2,000 users: failed or refused", [report["failed"] + report["refused"]], "", most=0, reference=done)
    bench.add("W2, 2,000 users: p99", [report["latency"]["p99"]], "ms", most=50, reports=[report])
    bench.add("W2, 2,000 users: memory beside the hashing arena", [most], "MiB", most=150)


def arena_mib(server: Server) -> float:
    """Returns what the hashing threads hold: nothing after ten seconds without a password."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/readyz", timeout=5) as answer:
        return json.load(answer)["hashing"]["memory_mib"]
