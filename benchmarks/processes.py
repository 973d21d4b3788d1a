"""What processes and all that descend from them use: processor time and memory, as Linux counts them."""

import os
import pathlib
from collections.abc import Iterable, Mapping

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PROC = pathlib.Path("/proc")


def parse_stat(text: str) -> tuple[int, float]:
    """Return the parent of a process and the seconds of processor time that it has used.

    :param text: of its ``/proc/<pid>/stat``; the name of the program in it may have spaces and parentheses.
    """
    fields = text.rpartition(")")[2].split()
    return int(fields[1]), (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def parse_kib(text: str, name: str) -> int:
    """Return a value of a ``/proc`` file whose lines are like ``Pss:  12 kB``; 0 without it."""
    lines = [line for line in text.splitlines() if line.startswith(f"{name}:")]
    return int(lines[0].split()[1]) if lines else 0


def descendants(parents: Mapping[int, int], pids: Iterable[int]) -> set[int]:
    """Return the processes that exist, with their children and all that descends from these."""
    family = {pid for pid in pids if pid in parents}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return family


def cpu(pids: Iterable[int]) -> dict[int, float]:
    """Return the seconds of processor time that each process and each descendant has used."""
    stats = {pid: parse_stat(text) for pid, text in _read_all("stat").items()}
    family = descendants({pid: parent for pid, (parent, _) in stats.items()}, pids)
    return {pid: stats[pid][1] for pid in family}


def cpu_between(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """Return what was used in between, by those that began in between, too."""
    return sum(used - before.get(pid, 0.0) for pid, used in after.items())


def memory(pids: Iterable[int]) -> dict[str, float]:
    """Return the resident memory of processes with their descendants; PSS counts what they share once."""
    family = cpu(pids)
    statuses = [_read(pid, "status") for pid in family]
    rss = sum(parse_kib(text, "VmRSS") for text in statuses)
    pss = sum(parse_kib(_read(pid, "smaps_rollup"), "Pss") for pid in family)
    return {"processes": len(family), "rss_mib": rss / 1024, "pss_mib": pss / 1024}


def _read(pid: int, name: str) -> str:
    try:
        return (_PROC / str(pid) / name).read_text()
    except OSError:  # it has ended
        return ""


def _read_all(name: str) -> dict[int, str]:
    pids = [int(path.name) for path in _PROC.iterdir() if path.name.isdigit()]
    return {pid: text for pid in pids if (text := _read(pid, name))}
