"""Disks of simulated machines as iSCSI targets, as ``image/agent-extensions`` exports those of real ones.

What speaks iSCSI is tgtd (Debian's package tgt), so that others test what is written there. It needs no privileges.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ingot.rack import partitions, standby
from ingot.rack.command_errors import CommandError
from ingot.rack.commands import CommandSpec
from ingot.rack.disks import Disk
from ingot.rack.loop import in_thread
from ingot.rack.qemu_command import TIED_TO_THE_RACK

if TYPE_CHECKING:
    from ingot.rack.agent import Agent

_DAEMON, _COMMAND = "tgtd", "tgtadm"
_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"
"""Where Debian keeps both: users' own paths often lack it."""
_LUN = 1
_PATIENCE_S = 10


class _Target:
    """The target of one machine, in a daemon that all machines share.

    :param number: of the machine. :param place: has the daemon's socket.
    """

    def __init__(self, number: int, place: Path) -> None:
        self._number = str(number + 1)
        self._environment = {**os.environ, "TGT_IPC_SOCKET": str(place / "tgtd.socket")}

    def start_daemon(self, address: str, port: int, log: Path) -> None:
        """Start the daemon unless it runs; it ends with the rack."""
        if self._try("--op", "show", "--mode", "system"):
            return
        command = [*TIED_TO_THE_RACK, _find(_DAEMON), "-f", "--iscsi", f"portal={address}:{port}"]
        with log.open("ab") as output:
            subprocess.Popen(command, env=self._environment, stdout=output, stderr=output).returncode = 0
        self._retry("--op", "show", "--mode", "system")

    def export(self, path: Path, iqn: str, user: tuple[str, str, str]) -> None:
        initiator, username, password = user
        target = ("--mode", "target", "--tid", self._number)
        self._run("--op", "new", *target, "--targetname", iqn)
        lun = ("--mode", "logicalunit", "--tid", self._number, "--lun", str(_LUN))
        self._run("--op", "new", *lun, "--backing-store", str(path))
        self._run("--op", "new", "--mode", "account", "--user", username, "--password", password)
        self._run("--op", "bind", "--mode", "account", "--tid", self._number, "--user", username)
        self._run("--op", "bind", *target, "--initiator-name", initiator)

    def end(self) -> None:
        """End the export, and with it the session of whatever writes."""
        self._try("--op", "delete", "--force", "--mode", "target", "--tid", self._number)

    def _retry(self, *words: str) -> None:
        for _ in range(_PATIENCE_S * 10):
            if self._try(*words):
                return
            time.sleep(0.1)
        raise CommandError("CommandExecutionError", f"{_DAEMON} does not start: it needs a port of its own")

    def _try(self, *words: str) -> bool:
        return self._call(*words).returncode == 0

    def _run(self, *words: str) -> None:
        done = self._call(*words)
        if done.returncode:
            raise CommandError("CommandExecutionError", f"{_COMMAND}: {done.stderr.strip()}")

    def _call(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [_find(_COMMAND), "--lld", "iscsi", *words],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_S,
        )


def _find(program: str) -> str:
    if found := shutil.which(program, path=_PATH):
        return found
    raise CommandError("CommandExecutionError", f"{program} is not installed: Debian has it in the package tgt")


def _target_of(agent: "Agent") -> _Target:
    return _Target(agent.machine.spec.index, agent.machine.site.state_dir)


async def start_iscsi_target(
    agent: "Agent",
    iqn: str,
    portal_port: int = 3260,
    wipe_disk_metadata: bool = False,
    initiator: str = "",
    username: str = "",
    password: str = "",
) -> dict[str, str]:
    """Export the root device to one initiator."""
    device = await standby.find_root_device(agent)
    if not isinstance(device, Disk):
        raise CommandError("CommandExecutionError", f"{device.name}: the rack exports single disks only")
    target, config = _target_of(agent), agent.machine.site.config

    def export() -> None:
        target.start_daemon(config.address, portal_port, agent.machine.site.state_dir / "tgtd.log")
        target.end()
        if wipe_disk_metadata:
            device.erase_metadata()
        target.export(device.path, iqn, (initiator, username, password))

    await in_thread(agent.machine.site.heavy, export)
    return {"iscsi_target_iqn": iqn}


async def stop_iscsi_target(agent: "Agent", node_uuid: str | None = None, configdrive: str | None = None) -> str:
    """End the export and add the config drive."""
    device = await standby.find_root_device(agent)

    def finish() -> None:
        _target_of(agent).end()
        partitions.move_backup_to_end(device)
        if configdrive:
            partitions.write_config_drive(device, standby.decode_config_drive(configdrive))
        device.flush()

    await in_thread(agent.machine.site.heavy, finish)
    return f"{device.name} of node {node_uuid} is not exported any more"


COMMANDS = {
    "iscsi.start_iscsi_target": CommandSpec(start_iscsi_target, asynchronous=False),
    "iscsi.stop_iscsi_target": CommandSpec(stop_iscsi_target),
}
