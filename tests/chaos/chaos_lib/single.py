"""A single database server."""

import random
import time

from databases_lib import mariadb, mysql, postgres

from . import nodes
from .place import Place, Strike, kill, tree

SERVERS = {"postgres": postgres, "mariadb": mariadb, "mysql": mysql}


class Single:
    """A server that is restarted in its folder."""

    def __init__(self, place: Place, kind: str, settings: dict[str, str] | None = None):
        self.server, self.settings = SERVERS[kind], settings
        self.folder = place.folder / kind
        self.start()
        place.also_end(self.processes)
        self.urls = [self.server.database(self.folder, "portiere")] * nodes.COUNT

    def start(self) -> None:
        self.server.up(self.folder, settings=self.settings)

    def processes(self) -> list[int]:
        pid = self.server.running(self.folder)
        return tree(pid) if pid else []

    def is_whole(self) -> bool:
        return self.server.running(self.folder) is not None

    def wait_until_whole(self) -> None:
        self.start()


def restart(cluster: Single, chance: random.Random) -> Strike:
    """kill -9, and a restart after a moment."""
    down, at = chance.uniform(0.1, 3), time.monotonic()
    kill(cluster.processes())
    time.sleep(down)
    cluster.start()
    return Strike(f"killed, started again after {down:.1f} s", at)
