"""The agent command that hands over the machine's log."""

import base64
import io
import tarfile
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ingot.rack.commands import CommandSpec

if TYPE_CHECKING:
    from ingot.rack.agent import Agent


async def collect_system_logs(agent: "Agent") -> dict[str, str]:
    return {"system_logs": pack(agent.machine.log_lines)}


def pack(lines: Iterable[str]) -> str:
    """Return a log as a tar.gz in base64."""
    content = ("\n".join(lines) + "\n").encode()
    entry = tarfile.TarInfo("journal")
    entry.size = len(content)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        archive.addfile(entry, io.BytesIO(content))
    return base64.b64encode(buffer.getvalue()).decode()


COMMANDS = {"log.collect_system_logs": CommandSpec(collect_system_logs, asynchronous=False)}
