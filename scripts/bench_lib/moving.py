"""`portiere move` of the large file to each database server, including the comparison: nobody can write meanwhile."""

import json
import shutil
import time
from contextlib import ExitStack

from .engines import SERVERS, Databases
from .growth import grown
from .measures import Bench
from .place import Place
from .programs import PORTIERE, run

# The most seconds for a million people.
MOST = 300


def moving(bench: Bench, _: Place) -> None:
    large = grown(bench)
    with ExitStack() as stack:
        databases = Databases(stack)
        for kind in SERVERS:
            # The source of a move is closed to writes afterwards.
            source = bench.folder / "moved"
            shutil.rmtree(source, ignore_errors=True)
            shutil.copytree(large.data, source)
            stack.callback(shutil.rmtree, source, ignore_errors=True)
            url, began = databases.empty(kind), time.monotonic()
            done = run([PORTIERE, "move", "--from", "sqlite:portiere.db", "--to", url, "--json", "--data", source])
            seconds = time.monotonic() - began
            rows = sum(table["rows"] for table in json.loads(done)["tables"])
            bench.add(f"moving {bench.users:,} people to {kind}", [seconds], "s", most=MOST * bench.users / 1_000_000,
                      reference=f"{rows:,} rows, {rows / seconds:,.0f} a second, compared")
