"""Runs dnsmasq as a child: starts it again when it ends, and ends with it.

It never runs as root, and has only the capabilities that DHCP and TFTP need: setpriv(1) gives them before it starts.
"""

import os
import pwd
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from oslo_log import log

from ingot.boot import dnsmasq, machines
from ingot.boot.settings import Settings
from ingot.common import errors

LOG = log.getLogger(__name__)

_CAPABILITIES = {"net_admin": 12, "net_bind_service": 10, "net_raw": 13}
"""What DHCP and TFTP need, with the numbers of <linux/capability.h>."""

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds before dnsmasq is started again: twice as long after each time, until it has run for a while."""

_A_WHILE = 60.0
_PATIENCE = 10.0
"""Seconds that dnsmasq has to end, and to read its file in a check."""

MACHINES = "machines"
"""The file by which dnsmasq knows machines. It stays, so that they are answered while the database is away."""

_GRUB = """set timeout=0
configfile (http,{server}){path}/boot/grub/grub.cfg-01-$net_default_mac
echo "Ingot at {server} gives no configuration. The machine tries again in a minute."
sleep 60
reboot
"""


def prepare(settings: Settings, loaders: dict[str, Path]) -> None:
    """Write everything that dnsmasq reads and serves.

    :param loaders: files by the names under which TFTP serves them.
    :raises ConfigurationError: that is not possible.
    """
    directory = settings.directory
    try:
        for folder in (directory, directory / "leases", settings.tftp_root, settings.tftp_root / "grub"):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o755)
        for name, place in loaders.items():
            machines.write(settings.tftp_root / name, place.read_bytes())
        machines.write(settings.tftp_root / "grub" / "grub.cfg", _render_grub(settings))
        machines.write(directory / "dnsmasq.conf", dnsmasq.render(settings))
        if not (directory / MACHINES).exists():
            machines.write(directory / MACHINES, "")
        if os.geteuid() == 0:
            _hand_over(directory / "leases", _find_user(settings.user))
    except OSError as exc:
        raise errors.ConfigurationError(f"[boot_services] directory: {exc.filename}: {exc.strerror}.") from exc


def _render_grub(settings: Settings) -> str:
    place = urlsplit(settings.api)
    return _GRUB.format(server=place.netloc, path=place.path)


def _hand_over(leases: Path, user: pwd.struct_passwd) -> None:
    """Give the directory to the user of dnsmasq, with what another user has left there."""
    for path in (leases, *leases.iterdir()):  # links stay links: they may lead to files of root
        os.chown(path, user.pw_uid, -1, follow_symlinks=False)


def _find_user(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        allowed = "A user of this host; Debian's package dnsmasq-base makes dnsmasq."
        raise errors.ConfigurationError(option="[boot_services] user", value=name, allowed=allowed) from None


def build_command(settings: Settings) -> list[str]:
    """Return what starts dnsmasq in the foreground.

    :raises ConfigurationError: this host lacks a program, or this process what dnsmasq needs.
    """
    programs = {"dnsmasq": "dnsmasq-base", "setpriv": "util-linux"}
    paths = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    found = {name: shutil.which(name, path=paths) for name in programs}
    if missing := [name for name, place in found.items() if place is None]:
        packages = ", ".join(programs[name] for name in missing)
        raise errors.ConfigurationError(f"There is no {' and no '.join(missing)} here: install Debian's {packages}.")
    confine = [str(found["setpriv"]), *_list_privileges(settings), "--no-new-privs", "--pdeathsig=KILL"]
    return [*confine, str(found["dnsmasq"]), "--keep-in-foreground", f"--conf-file={settings.directory}/dnsmasq.conf"]


def _list_privileges(settings: Settings) -> list[str]:
    """Return what makes a process of root one of the user for dnsmasq that has what DHCP needs, and nothing else.

    One of another user hands on what it has itself, by its ambient set (capabilities(7)).

    :raises ConfigurationError: it has not what DHCP needs.
    """
    if os.geteuid() == 0:
        user = _find_user(settings.user)
        given = ",".join(["-all", *(f"+{name}" for name in _CAPABILITIES)])
        limits = [f"--{which}={given}" for which in ("inh-caps", "ambient-caps", "bounding-set")]
        return [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", *limits]
    lines = dict(line.split(":\t") for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    held = int(lines["CapAmb"], 16)
    if lacking := [f"CAP_{name.upper()}" for name, bit in _CAPABILITIES.items() if not held >> bit & 1]:
        raise errors.ConfigurationError(
            f"ingot-boot lacks {', '.join(lacking)}, which DHCP needs. Its unit of systemd gives them "
            "(AmbientCapabilities=); by hand, start it as root: dnsmasq then runs as [boot_services] user."
        )
    return []


def check(command: Sequence[str]) -> None:
    """Have dnsmasq read its file.

    :raises ConfigurationError: it refuses the file, cannot be started, or takes too long.
    """
    try:
        tried = subprocess.run(  # noqa: S603 - programs of this host, found in PATH
            [*command, "--test"], capture_output=True, text=True, errors="replace", timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise errors.ConfigurationError(f"dnsmasq cannot check what ingot-boot wrote: {exc}.") from exc
    if tried.returncode:
        raise errors.ConfigurationError(f"dnsmasq refuses what ingot-boot wrote: {tried.stderr.strip()[-500:]}.")


class Server:
    """A dnsmasq that runs for as long as this does.

    :param command: starts it in the foreground.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._child: subprocess.Popen[bytes] | None = None
        self._guard = threading.Lock()
        self._stopping = threading.Event()
        self._anew = threading.Event()
        # The child is killed when the thread that started it ends, so that one has to be there for as long.
        self._thread = threading.Thread(target=self._run, name="dnsmasq", daemon=True)

    def start(self) -> None:
        """Begin to run it."""
        self._thread.start()

    def read_again(self) -> None:
        """Have it read anew which machines there are."""
        self._send(signal.SIGHUP)

    def restart(self, command: Sequence[str]) -> None:
        """Have it begin anew, with another command or file."""
        with self._guard:
            self._command = list(command)
            self._anew.set()
            if self._child is not None:
                self._child.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """End it."""
        self._stopping.set()
        self._anew.set()
        self._send(signal.SIGTERM)
        self._thread.join(_PATIENCE)
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        with self._guard:
            if self._child is not None:
                self._child.send_signal(number)

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stopping.is_set():
            began = time.monotonic()
            how = self._run_once()
            if self._stopping.is_set():
                return
            if self._anew.is_set():
                pause = _FIRST_PAUSE
                continue
            pause = _FIRST_PAUSE if time.monotonic() - began >= _A_WHILE else pause
            LOG.error("dnsmasq has ended with %s; it is started again in %.0f s", how, pause)
            self._anew.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _run_once(self) -> str:
        """Run it until it ends; return how it ended."""
        with self._guard:
            if self._stopping.is_set():
                return "nothing"
            self._anew.clear()
            try:
                self._child = subprocess.Popen(  # noqa: S603 - as above
                    self._command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
                )
            except OSError as exc:  # its package may be in an upgrade
                return f"no start: {exc}"
        LOG.info("dnsmasq runs as process %d", self._child.pid)
        assert self._child.stderr is not None  # noqa: S101 - it is a pipe
        with self._child.stderr as said:
            for line in said:
                _log(line)
        status = self._child.wait()
        with self._guard:
            self._child = None
        return f"{signal.Signals(-status).name}" if status < 0 else f"status {status}"


def _log(line: bytes) -> None:
    """Log what dnsmasq says, in which machines may have written anything."""
    text = line.decode(errors="replace").strip()[:500]
    LOG.info("%s", "".join(character if character.isprintable() else "?" for character in text))
