"""The machine, and what a process on it costs."""

import os
import statistics
import struct
import threading
import time
from pathlib import Path


def describe(folder: Path) -> dict:
    """Returns everything about the machine that a figure depends on, read at the start of the run."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": os.uname().release,
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "fsync_ms": round(fsync_ms(folder), 2),
        "autogroup": autogroup(),
    }


def autogroup() -> bool:
    """Returns whether Linux schedules sessions as groups (sched(7)): niceness then counts only within a session, and
    hashing threads delay the kernel's own threads, among them those of the disk."""
    setting = Path("/proc/sys/kernel/sched_autogroup_enabled")
    return setting.exists() and setting.read_text().strip() == "1"


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return os.uname().machine


def fsync_ms(folder: Path) -> float:
    """Returns the time to append 4 KiB to a file and sync it, as the median of 200."""
    probe = folder / "fsync-probe"
    with probe.open("wb", buffering=0) as file:
        took = [_sync_ms(file) for _ in range(200)]
    probe.unlink()
    return statistics.median(took)


def _sync_ms(file) -> float:
    file.write(bytes(4096))
    begun = time.perf_counter()
    os.fdatasync(file.fileno())
    return (time.perf_counter() - begun) * 1000


class Disk:
    """Watches a disk: appends and syncs 4 KiB twenty times per second. A disk that others use, or whose rate is
    limited, stalls now and then, and so does every commit."""

    PAUSE = 0.05

    def __init__(self, folder: Path):
        self.probe, self.took, self.over = folder / "disk-probe", [], threading.Event()
        self.watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Disk":
        self.watcher.start()
        return self

    def __exit__(self, *_) -> None:
        self.over.set()
        self.watcher.join()
        self.probe.unlink(missing_ok=True)

    def _watch(self) -> None:
        with self.probe.open("wb", buffering=0) as file:
            while not self.over.wait(self.PAUSE):
                self.took.append(_sync_ms(file))

    @property
    def longest_ms(self) -> float:
        return max(self.took, default=0.0)


def rss_mib(pid: int) -> float:
    """Returns the resident memory of a process, in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"process {pid} has no memory")


def cpu_seconds(pid: int) -> float:
    """Returns user and system time of a process so far: fields 14 and 15 of proc_pid_stat(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def threads_cpu_seconds(pid: int) -> dict[str, float]:
    """Returns the same for the threads that live now, by name."""
    found: dict[str, float] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        text = (task / "stat").read_text()
        name = text[text.index("(") + 1:text.rindex(")")]
        fields = text.rpartition(")")[2].split()
        spent = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        found[name] = found.get(name, 0) + spent
    return found


class Cage:
    """A control group whose processes share a part of a core; its folder is under /sys/fs/cgroup (version 1 or 2)."""

    PERIOD_US = 20_000

    def __init__(self, name: str, share: float):
        root = Path("/sys/fs/cgroup")
        quota = int(share * self.PERIOD_US)
        if (root / "cpu" / "cpu.cfs_quota_us").exists() or (root / "cpu" / "tasks").exists():
            self.folder = root / "cpu" / name
            self.limits = {"cpu.cfs_period_us": self.PERIOD_US, "cpu.cfs_quota_us": quota}
        else:
            self.folder = root / name
            self.limits = {"cpu.max": f"{quota} {self.PERIOD_US}"}

    def put(self, pid: int) -> None:
        (self.folder / "cgroup.procs").write_text(str(pid))

    def __enter__(self) -> "Cage":
        self.folder.mkdir()
        for name, value in self.limits.items():
            (self.folder / name).write_text(str(value))
        return self

    def __exit__(self, *_) -> None:
        # A killed process stays in the group for a moment.
        for _ in range(50):
            try:
                return self.folder.rmdir()
            except OSError:
                time.sleep(0.1)


def has_symbol_table(binary: Path) -> bool:
    """Returns whether a 64-bit little-endian ELF file has a section of type SHT_SYMTAB."""
    data = binary.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        return False
    (sections,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    return any(struct.unpack_from("<I", data, sections + size * at + 4)[0] == 2 for at in range(count))
