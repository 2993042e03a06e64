"""One folder and the processes in it: everything that a run makes, and its end."""

import ctypes
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from databases_lib.folder import Owner

ENDED_WITHIN_S = 60
POLL_S = 0.1
# linux/prctl.h
PR_SET_CHILD_SUBREAPER = 36


class Trouble(Exception):
    """What keeps a run from going on; no verdict on Portiere."""


@dataclass
class Strike:
    """What was done to a cluster."""

    what: str
    # When it happened (`time.monotonic`).
    at: float
    # Whether the cluster has noticed, and somebody else has taken over where somebody has to.
    felt: Callable[[], bool] = lambda: True
    mend: Callable[[], None] = lambda: None


class Place:
    """A temporary folder. Whatever was started in it is ended, by id, when it is closed."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="portiere-chaos-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.processes: list[Process] = []
        self.others: list = []
        self.over = threading.Event()
        adopt()
        threading.Thread(target=self._bury, daemon=True).start()

    def start(self, name: str, words: list, user: str | None = None, env: dict | None = None) -> "Process":
        """Runs a program as `user`, where we may say as whom; its output goes to `name.log`."""
        log = (self.folder / f"{name}.log").open("ab")
        child = subprocess.Popen(
            [str(word) for word in words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
            env=os.environ | (env or {}), start_new_session=True, **as_user(user),
        )
        log.close()
        process = Process(name, child)
        self.processes.append(process)
        return process

    def room(self, name: str, user: str) -> Path:
        """A folder of its own for a server."""
        folder = self.folder / name
        folder.mkdir(mode=0o700, exist_ok=True)
        give(folder, user)
        return folder

    def also_end(self, pids) -> None:
        """Names, at the end, processes that left their parent: a function that answers their ids."""
        self.others.append(pids)

    def close(self, keep: bool) -> None:
        """Ends every process, the youngest first, and takes the folder away."""
        for process in reversed(self.processes):
            process.kill()
        for pids in self.others:
            kill(pids())
        self.over.set()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)


    def _bury(self) -> None:
        """Takes note that adopted processes have ended: PostgreSQL does not start while the one before it is a zombie."""
        while not self.over.wait(POLL_S):
            known = {process.pid for process in self.processes}
            for pid in children().get(os.getpid(), []):
                # What is adopted comes from a group of its own; those of subprocess.run are of ours, and waited for by it: it
                # would take one that was buried here for one that went well.
                try:
                    adopted = pid not in known and is_zombie(pid) and os.getpgid(pid) != os.getpgrp()
                    # One that was only just started may not be known yet.
                    if adopted and not self.over.wait(POLL_S) and pid not in {process.pid for process in self.processes}:
                        os.waitpid(pid, os.WNOHANG)
                except (ChildProcessError, ProcessLookupError):
                    pass


class Process:
    """A program that was started here, with its children."""

    def __init__(self, name: str, child: subprocess.Popen):
        self.name = name
        self.child = child

    @property
    def pid(self) -> int:
        return self.child.pid

    def runs(self) -> bool:
        return self.child.poll() is None

    def kill(self) -> None:
        """kill -9, with everything below it."""
        if self.runs():
            kill(tree(self.pid))
        self.child.wait()

    def stop(self) -> None:
        """Asks it to end."""
        if self.runs():
            os.kill(self.pid, signal.SIGTERM)
        try:
            self.child.wait(ENDED_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()


def tree(pid: int) -> list[int]:
    """A process and all that descends from it."""
    below, found = children(), [pid]
    for one in found:
        found.extend(below.get(one, []))
    return found


def children() -> dict[int, list[int]]:
    """Every process that has children, and those."""
    below: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        found = stat(int(folder.name))
        if found:
            below.setdefault(int(found[1]), []).append(int(folder.name))
    return below


def is_zombie(pid: int) -> bool:
    return stat(pid)[:1] == ["Z"]


def stat(pid: int) -> list[str]:
    """State, parent and the rest of /proc/PID/stat; empty where there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return []


def adopt() -> None:
    """Whoever loses its parent below us becomes our child, not that of the machine's first process."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def send(pids: list[int], number: int) -> None:
    """Sends a signal to each that is still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def kill(pids: list[int]) -> None:
    send(pids, signal.SIGKILL)


def wait_until(what: str, seconds: float, found):
    """Waits until `found` answers something, and answers that."""
    deadline = time.monotonic() + seconds
    while True:
        if (answer := found()):
            return answer
        if time.monotonic() > deadline:
            raise Trouble(f"{what}: not within {seconds:.0f} s")
        time.sleep(POLL_S)


def password() -> str:
    return secrets.token_hex(16)


def tool(name: str, package: str) -> str:
    """A program of a Debian package."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise Trouble(f"{name} is not installed: apt-get install {package}")
    return found


def run(words: list, user: str | None = None) -> str:
    """Runs a program to its end, which has to be a good one. Answers what it printed."""
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/",
                          **as_user(user))
    if done.returncode != 0:
        raise Trouble(f"{Path(words[0]).name} ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def as_user(name: str | None) -> dict:
    """How to run something as somebody who may do nothing else; only root may say so."""
    return {} if name is None else Owner(name).running()


def give(path: Path, user: str) -> None:
    """Gives a file or folder to who is going to use it."""
    who = Owner(user).account()
    if who is not None:
        os.chown(path, who.pw_uid, who.pw_gid)
