"""The same figures on a large file, in turn with a small one."""

import hashlib
import json
import shutil
import statistics
import time
from pathlib import Path

from .measures import Bench, starts
from .place import Place
from .programs import ROOT, Failed, Server

# A large file is kept and reused while its sessions are young enough that the server does not delete them.
KEEP_DAYS = 14
SESSIONS_EACH = 5
# The approximate size on disk of a user with their sessions, in bytes.
BYTES_EACH = 3500

# Figure, application, arguments of the load generator, and the field of its report that is compared.
COMPARED = [
    ("W1 without password", "web-es256", ["w1", "--no-password"], "iterations_per_second"),
    ("W1, 20 users", "web-rs256", ["w1"], "iterations_per_second"),
    ("refresh", "web-es256", ["refresh"], "requests_per_cpu_second"),
    ("introspection", "web-es256", ["introspect"], "requests_per_cpu_second"),
]


def growth(bench: Bench, small: Place) -> None:
    large = grown(bench)
    size = sum(file.stat().st_size for file in large.data.iterdir() if file.is_file()) / 2**30
    what = f"{bench.users:,} users, {bench.users * SESSIONS_EACH:,} sessions, {size:.2f} GiB"
    bench.add(f"start to ready with {bench.users:,} users, slowest", [max(starts(large.data))], "ms", most=150,
              reference=what)
    with Server(small.data) as few, Server(large.data) as many:
        few.settle()
        many.settle()
        for name, client, arguments, field in COMPARED:
            compare(bench, name, (small, few), (large, many), (client, arguments, field))


def compare(bench: Bench, name: str, small: tuple, large: tuple, how: tuple) -> None:
    """Measures small, large, small, large: the share of a figure that remains on the large file."""
    client, arguments, field = how
    values, reports = {"small": [], "large": []}, []
    for _ in range(bench.rounds):
        for which, (place, server) in (("small", small), ("large", large)):
            report = bench.measure(server, place, client, *arguments)
            reports.append(report)
            values[which].append(report[field] if field in report else report["server"][field])
    few, many = statistics.median(values["small"]), statistics.median(values["large"])
    unit = "flows/s" if field == "iterations_per_second" else "per CPU s"
    bench.add(f"{name} on the large file", [100 * b / a for a, b in zip(values["small"], values["large"])], "%",
              least=85, reports=reports, reference=f"{many:,.0f} and {few:,.0f} {unit} on the small one")


def grown(bench: Bench) -> Place:
    """Returns the large file; creates it unless there is one of this size, schema and age."""
    place, sessions = Place(bench.folder / "grown"), bench.users * SESSIONS_EACH
    mark = place.folder / "made.json"
    wanted = {"users": bench.users, "sessions": sessions, "schema": schema()}
    if mark.exists() and json.loads(mark.read_text()) == wanted and age_days(mark) < KEEP_DAYS:
        return place
    need, free = bench.users * BYTES_EACH, shutil.disk_usage(bench.folder).free
    if free < 2 * need:
        raise Failed(f"the large file needs {2 * need / 2**30:.0f} GiB of disk, {free / 2**30:.0f} are free")
    bench.say(f"making a file of {bench.users:,} users, about {need / 2**30:.1f} GiB, in {place.folder}")
    place.make(bench.users, sessions)
    mark.write_text(json.dumps(wanted))
    return place


def schema() -> str:
    """Returns a hash that changes with the tables."""
    files = sorted((ROOT / "crates/store/src/migrations").glob("*.rs"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def age_days(file: Path) -> float:
    return (time.time() - file.stat().st_mtime) / 86400
