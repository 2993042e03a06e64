"""The command line, and the order of the measures."""

import argparse
import shutil
import sys

from . import machine, measures, passwords
from .engines import engines
from .figures import table, write
from .growth import growth
from .measures import REQUESTS, Bench
from .moving import moving
from .overload import overload
from .place import Place
from .programs import PORTIERE, RELEASE, Failed, build
from .timing import timing
from .traffic import traffic
from .workers import workers

MEASURES = {
    "start": measures.start,
    "binary": measures.binary,
    "w1": measures.w1,
    "overhead": passwords.overhead,
    "light": passwords.light,
    "hashes": passwords.hashes,
    "session": measures.session,
    **{name: measures.requests(name) for name in REQUESTS},
    "generator": measures.generator,
    "writers": measures.writers,
    "timing": timing,
    "growth": growth,
    "engines": engines,
    "move": moving,
    "overload": overload,
    "w2": traffic,
    "workers": workers,
}

# Measures that need more than the release build: they run only if named.
APART = {"engines", "move", "overload", "w2", "workers"}

SMALL = (1000, 5000)


def arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="Measures the release build.")
    parser.add_argument("--only", metavar="W1,…", help=f"only these: {', '.join(MEASURES)}")
    parser.add_argument("--seconds", type=float, metavar="N", help="length of a run [default: 10; with --quick 2]")
    parser.add_argument("--rounds", type=int, metavar="N", help="runs of each figure [default: 3; with --quick 1]")
    parser.add_argument("--users", type=int, metavar="N",
                        help="people in the large file, with 5 sessions each [default: 1000000; with --quick 20000]")
    parser.add_argument("--pairs", type=int, metavar="N",
                        help="pairs of refusals whose times are compared [default: 1000; with --quick 200]")
    parser.add_argument("--quick", action="store_true", help="short runs: to see that it works, not how fast")
    parser.add_argument("--clean", action="store_true", help="remove what earlier runs left, and end")
    chosen = parser.parse_args(argv)
    for name, long, short in (("seconds", 10.0, 2.0), ("rounds", 3, 1), ("users", 1_000_000, 20_000),
                              ("pairs", 1000, 200)):
        if getattr(chosen, name) is None:
            setattr(chosen, name, short if chosen.quick else long)
        if getattr(chosen, name) <= 0:
            parser.error(f"--{name} must be above zero")
    names = [name for name in MEASURES if name not in APART]
    if chosen.only:
        names = [name.strip().lower() for name in chosen.only.split(",")]
    unknown = [name for name in names if name not in MEASURES]
    if unknown:
        parser.error(f"no measure is called {', '.join(unknown)}; there are {', '.join(MEASURES)}")
    chosen.measures = names
    return chosen


def main(argv: list[str] | None = None) -> int:
    """Runs what was asked for. Returns 0 if every target was reached, 1 if one was missed or something failed."""
    chosen = arguments(argv)
    folder = RELEASE.parent / "bench"
    if chosen.clean:
        shutil.rmtree(folder, ignore_errors=True)
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return measure(Bench(folder, chosen.seconds, chosen.rounds, chosen.users, chosen.pairs), chosen.measures)
    except Failed as why:
        print(f"bench: {why}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def measure(bench: Bench, names: list[str]) -> int:
    build()
    found = machine.describe(bench.folder)
    print(introduce(found), flush=True)
    place = Place(bench.folder / "small").make(*SMALL)
    failed = False
    for name in names:
        try:
            MEASURES[name](bench, place)
        except Failed as why:
            failed = True
            print(f"bench: {name}: {why}", file=sys.stderr)
    settings = bench.settings or ["none differs from the default, but for the port"]
    print(f"\n{introduce(found)}\nsettings: {'; '.join(settings)}\n\n{table(bench.figures)}")
    latest = bench.folder / "latest.json"
    write(latest, found | {"binary": str(PORTIERE.name)}, settings, bench.figures)
    print(f"\n{sum(figure.reached for figure in bench.figures)} of {len(bench.figures)} reached; as JSON in {latest}")
    return int(failed or not all(figure.reached for figure in bench.figures))


def introduce(found: dict) -> str:
    one, five, fifteen = found["load_average"]
    busy = " (busy: figures are provisional)" if one > 0.5 * found["cores"] else ""
    return (f"{found['cpu']}, {found['cores']} cores, {found['memory_gib']} GiB, Linux {found['kernel']}\n"
            f"fsync of 4 KiB {found['fsync_ms']} ms; load average {one} {five} {fifteen} at the start{busy}")
