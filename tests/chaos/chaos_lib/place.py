"""A folder and the processes in it: everything that a run creates, and how it is cleaned up."""

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
    """The reason why a run cannot go on; not a verdict on Portiere."""


@dataclass
class Strike:
    """A fault that was injected into a cluster."""

    what: str
    # When it happened (`time.monotonic`).
    at: float
    # Whether the cluster has noticed, and another member has taken over where one has to.
    felt: Callable[[], bool] = lambda: True
    mend: Callable[[], None] = lambda: None


class Place:
    """A temporary folder. Closing it ends, by PID, everything that was started in it."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="portiere-chaos-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.processes: list[Process] = []
        self.others: list = []
        self.over = threading.Event()
        adopt()
        threading.Thread(target=self._bury, daemon=True).start()

    def start(self, name: str, words: list, user: str | None = None, env: dict | None = None) -> "Process":
        """Runs a program as `user`, if we may choose the user; its output goes to `name.log`."""
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
        """Creates a folder for a server."""
        folder = self.folder / name
        folder.mkdir(mode=0o700, exist_ok=True)
        give(folder, user)
        return folder

    def also_end(self, pids) -> None:
        """Registers processes that left their parent, to end them as well: a function that returns their PIDs."""
        self.others.append(pids)

    def close(self, keep: bool) -> None:
        """Ends every process, the youngest first, and removes the folder."""
        for process in reversed(self.processes):
            process.kill()
        for pids in self.others:
            kill(pids())
        self.over.set()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)


    def _bury(self) -> None:
        """Reaps adopted processes that have ended: PostgreSQL does not start while the one before it is a zombie."""
        while not self.over.wait(POLL_S):
            known = {process.pid for process in self.processes}
            for pid in children().get(os.getpid(), []):
                # Adopted processes come from groups of their own; those of subprocess.run are in ours, and it waits for
                # them: it would take a process that was reaped here for one that succeeded.
                try:
                    adopted = pid not in known and is_zombie(pid) and os.getpgid(pid) != os.getpgrp()
                    # A process that was just started may not be registered yet.
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
        """kill -9, with all its descendants."""
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
    """Returns a process and all its descendants."""
    below, found = children(), [pid]
    for one in found:
        found.extend(below.get(one, []))
    return found


def children() -> dict[int, list[int]]:
    """Returns every process that has children, with those children."""
    below: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        found = stat(int(folder.name))
        if found:
            below.setdefault(int(found[1]), []).append(int(folder.name))
    return below


def is_zombie(pid: int) -> bool:
    return stat(pid)[:1] == ["Z"]


def stat(pid: int) -> list[str]:
    """Returns state, parent and the rest of /proc/PID/stat; empty if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return []


def adopt() -> None:
    """Makes orphans among our descendants our children, not those of the machine's first process."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def send(pids: list[int], number: int) -> None:
    """Sends a signal to each process that still exists."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def kill(pids: list[int]) -> None:
    send(pids, signal.SIGKILL)


def wait_until(what: str, seconds: float, found):
    """Waits until `found` returns something, and returns that."""
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
    """Returns a program of a Debian package."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise Trouble(f"{name} is not installed: apt-get install {package}")
    return found


def run(words: list, user: str | None = None) -> str:
    """Runs a program to its end, which has to be successful. Returns what it printed."""
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/",
                          **as_user(user))
    if done.returncode != 0:
        raise Trouble(f"{Path(words[0]).name} ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def as_user(name: str | None) -> dict:
    """Returns how to run something as an unprivileged user; only root can do so."""
    return {} if name is None else Owner(name).running()


def give(path: Path, user: str) -> None:
    """Gives a file or folder to its future user."""
    who = Owner(user).account()
    if who is not None:
        os.chown(path, who.pw_uid, who.pw_gid)
