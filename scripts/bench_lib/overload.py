"""Ten times the load that there is room for: who gets through, who has to retry later, and what those inside notice."""

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import machine
from .measures import Bench
from .place import Place
from .programs import RELEASE, Server, load, run

# The light requests beside a flood: workload, and rate per second.
LIGHT = {"introspect": 300, "refresh": 100, "jwks": 100}

# The light clients have to sign in first, which a flood would prevent: seconds until all have.
HEAD_START = 5
# The light load ends before the flood: thousands of connections that close at one moment must not affect it. Seconds.
BEFORE_THE_END = 2
# Seconds of load before anything counts.
WARMUP = 2

# Concurrent users in the closed loop that finds the best rate.
BEST = 40

# Connections that send next to nothing, and the program that makes them.
SLOW = 5000
HOSTILE = Path(__file__).with_name("hostile.py")


def overload(bench: Bench, place: Place) -> None:
    """Measures W4 at ten times the best rate, a crowd of browsers, and hostile clients."""
    with Server(place.data) as server:
        flood(bench, place, server)
    for browsers in (1000, 5000):
        with Server(place.data) as server:
            crowd(bench, place, server, browsers)
    with Server(place.data) as server:
        hostile(bench, place, server)


def offered(place: Place, server: Server, pace: tuple[str, float, int], seconds: float, warmup: int = WARMUP) -> dict:
    """Runs one open loop of a workload, a rate and a number of users; unlike the closed one it may be refused."""
    workload, rate, vus = pace
    command = [RELEASE / "examples" / "load", workload, "--json", "--target", server.url, "--server-pid", server.pid,
               "--duration", f"{seconds}s", "--warmup", f"{warmup}s", "--rate", rate, "--vus", vus,
               *place.arguments("web-es256")]
    (report,) = json.loads(run(command))["runs"]
    return report


def beside_light(bench: Bench, place: Place, server: Server, heavy) -> tuple[dict, dict[str, dict]]:
    """Runs `heavy` while light requests go on, all measured in the same seconds."""
    with ThreadPoolExecutor(len(LIGHT) + 1) as all_of_it:
        seconds = max(1, bench.seconds - BEFORE_THE_END)
        light = {name: all_of_it.submit(offered, place, server, (name, rate, 50), seconds, WARMUP + HEAD_START)
                 for name, rate in LIGHT.items()}
        time.sleep(HEAD_START)
        report = all_of_it.submit(heavy).result()
        return report, {name: done.result() for name, done in light.items()}


def flood(bench: Bench, place: Place, server: Server) -> None:
    shares, refusals, lost, light, failed, after, stops = [], [], [], [], [], [], []
    rate = best_rate(bench, place, server)
    for _ in range(bench.rounds):
        calm = load(server, "w1", vus=2, seconds=2, arguments=place.arguments("web-es256"))["latency"]["p95"]
        with machine.Disk(bench.folder) as disk:
            report, beside = beside_light(bench, place, server,
                                          lambda: offered(place, server, ("w1", 10 * rate, 4000), bench.seconds))
        stops.append(disk.longest_ms)
        time.sleep(4)
        again = load(server, "w1", vus=2, seconds=2, arguments=place.arguments("web-es256"))["latency"]["p95"]
        # A shared machine is faster at one time than at another: the best rate is that of just before and just after.
        before, rate = rate, best_rate(bench, place, server)
        shares.append(100 * report["iterations_per_second"] / ((before + rate) / 2))
        refusals.append(max(step["refusal"]["p99"] for step in report["steps"]))
        lost.append(report["failed"] + report["unfinished"])
        light.append(max(one["latency"]["p99"] for one in beside.values()))
        failed.append(sum(one["failed"] + one["refused"] + one["unfinished"] for one in beside.values()))
        after.append(again / calm)
        bench.say(f"offered {10 * before:.0f}/s: {report['iterations_per_second']:.0f} sign-ins/s, {before:.0f} before and "
                  f"{rate:.0f} after at best, {report['refused']} refused within {refusals[-1]:.1f} ms (p99), beside them "
                  f"{light[-1]:.1f} ms (p99); the longest fsync took {stops[-1]:.0f} ms")
    meanwhile = f"longest fsync of 4 KiB meanwhile: {', '.join(f'{stop:.0f}' for stop in stops)} ms"
    bench.add("sign-ins at ten times capacity, beside the best rate", shares, "%", least=90)
    bench.add("refusals, p99", refusals, "ms", most=50, reference=meanwhile)
    bench.add("neither done nor refused", lost, "", most=0)
    bench.add("light requests beside the flood, p99", light, "ms", most=15, reference=meanwhile)
    bench.add("light requests that were not answered", failed, "", most=0)
    bench.add("a sign-in 4 s after the flood beside one before it, p95", after, "x", most=1.5)


def best_rate(bench: Bench, place: Place, server: Server) -> float:
    """Returns the sign-ins a second of a closed loop in which nobody is refused, beside the light requests."""
    best, _ = beside_light(bench, place, server, lambda: bench.measure(server, place, "web-es256", "w1", vus=BEST))
    return best["iterations_per_second"]


def crowd(bench: Bench, place: Place, server: Server, browsers: int) -> None:
    """Runs this many concurrent browsers, each of which retries at once when it is refused."""
    best = bench.measure(server, place, "web-es256", "w1", vus=BEST)["iterations_per_second"]
    peak = Peak(server.pid)
    command = [RELEASE / "examples" / "load", "w1", "--json", "--target", server.url, "--vus", browsers, "--duration",
               f"{bench.seconds}s", "--warmup", "2s", "--timeout", "60s", *place.arguments("web-es256")]
    (report,) = json.loads(run(command))["runs"]
    most = peak.stop()
    bench.say(f"{browsers} browsers: {report['iterations_per_second']:.0f} sign-ins/s, {report['refused']} refused, "
              f"{report['failed']} failed, {most:.0f} MiB: {report['failures'][:3]}")
    bench.add(f"{browsers} browsers at once: failures other than refusals", [report["failed"]], "", most=0)
    bench.add(f"{browsers} browsers at once: sign-ins beside the best rate", [100 * report["iterations_per_second"] / best],
              "%", least=60)
    bench.add(f"{browsers} browsers at once: memory", [most], "MiB", most=400)


class Peak:
    """The most memory of a process while it is watched, in MiB; `beside` returns the part that does not count."""

    def __init__(self, pid: int, beside=lambda: 0.0):
        self.pid, self.beside, self.most, self.over = pid, beside, 0.0, threading.Event()
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()

    def _watch(self) -> None:
        while not self.over.wait(0.1):
            try:
                before, memory, after = self.beside(), machine.rss_mib(self.pid), self.beside()
            except OSError:
                continue
            self.most = max(self.most, memory - max(before, after))

    def stop(self) -> float:
        self.over.set()
        self.watcher.join()
        return self.most


def hostile(bench: Bench, place: Place, server: Server) -> None:
    """Measures legitimate sign-ins while thousands of connections dawdle and others send far too much."""
    before = machine.rss_mib(server.pid)
    peak = Peak(server.pid)
    port = server.url.rpartition(":")[2]
    attack = subprocess.Popen([sys.executable, HOSTILE, port, str(SLOW), str(bench.seconds + 6)])
    time.sleep(3)
    report = bench.measure(server, place, "web-es256", "w1", vus=4)
    attack.terminate()
    attack.wait()
    most = peak.stop()
    bench.add(f"sign-ins beside {SLOW} slow connections and huge requests, p99", [report["latency"]["p99"]], "ms",
              most=1000, reports=[report])
    bench.add("sign-ins beside them: failures other than refusals", [report["failed"]], "", most=0)
    bench.add("memory beside them", [most], "MiB", most=400, reference=f"{before:.0f} MiB before")
