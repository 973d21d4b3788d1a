"""What processes and all that descend from them use: processor time and memory."""

import contextlib
from collections.abc import Iterable, Mapping

import psutil


def family(pids: Iterable[int]) -> list[psutil.Process]:
    """Return those of some processes that exist, with all that descends from them."""
    found = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            parent = psutil.Process(pid)
            found += [parent, *parent.children(recursive=True)]
    return found


def cpu(pids: Iterable[int]) -> dict[int, float]:
    """Return the seconds of processor time that each process and each descendant has used."""
    used = {}
    for process in family(pids):
        with contextlib.suppress(psutil.NoSuchProcess):
            used[process.pid] = sum(process.cpu_times()[:2])
    return used


def cpu_between(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """Return what was used in between, by those that began in between, too."""
    return sum(used - before.get(pid, 0.0) for pid, used in after.items())


def memory(pids: Iterable[int]) -> dict[str, float]:
    """Return the resident memory of processes with their descendants; PSS counts what they share once."""
    found = [process.memory_full_info() for process in family(pids)]
    rss, pss = (sum(getattr(one, name) for one in found) / 2**20 for name in ("rss", "pss"))
    return {"processes": len(found), "rss_mib": rss, "pss_mib": pss}


def threads(pids: Iterable[int]) -> int:
    """Return how many threads processes and their descendants have."""
    return sum(process.num_threads() for process in family(pids))


def listening(port: int) -> list[int]:
    """Return the processes that listen on a port."""
    found = psutil.net_connections("tcp")
    return sorted({one.pid for one in found if one.pid and one.status == psutil.CONN_LISTEN and one.laddr.port == port})
