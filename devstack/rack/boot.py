"""Network boot: what a machine's firmware does with an iPXE script (https://ipxe.org/scripting).

The reader knows the commands that boot scripts are made of. One that it does not know fails, as in iPXE, and
a failing command ends the script unless ``||`` catches it. ``boot_files`` has what other loaders read.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Protocol
from urllib.parse import urljoin

import requests

from ingot.rack import boot_files, volumes
from ingot.rack.boot_files import BootError, BootPlan, parse_arguments
from ingot.rack.config import MachineSpec, script_url
from ingot.rack.loop import Site, in_thread

FETCH_TIMEOUT = 30.0
HOST = "127.0.0.1"
_USER_AGENTS = {
    "ipxe": "iPXE/1.21.1+ (ingot-rack)",
    "grub": "GRUB 2.12 (ingot-rack)",
    "pxelinux": "Syslinux/6.04 (ingot-rack)",
    "petitboot": "Wget (ingot-rack)",
}
# A script that loops more often than this without sleeping is stuck.
MAX_COMMANDS = 2000

_VARIABLE = re.compile(r"\$\{([^${}]*)\}")
_OPERATORS = re.compile(r"\s(\|\||&&)\s")
_OPTIONS_WITH_VALUE = {"-n", "--name", "-t", "--timeout", "-k", "--key", "-d", "--drive"}
_NO_EFFECT = {
    "autoboot", "clear", "colour", "cpair", "dhcp", "echo", "ifclose", "ifconf", "ifopen", "ifstat",
    "imgfree", "imgstat", "imgtrust", "imgverify", "ntp", "prompt", "route", "sync",
}  # fmt: skip


class CommandFailed(BootError):
    """A script's command failed."""


class ScriptEnd(Exception):
    """The script gave control back with ``exit``."""


class LocalBoot(Exception):
    """The script starts from the machine's disk."""


class StartImage(Exception):
    """The script starts from an image that a web server has."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url


class Reboot(Exception):
    """The script has the machine start again."""


class Booting(Protocol):
    """The machine that boots."""

    spec: MachineSpec
    site: Site

    def log(self, text: str) -> None: ...


class Firmware:
    """A machine's network boot firmware, with a loader in it."""

    def __init__(self, machine: Booting, efi: bool) -> None:
        self._machine = machine
        self._efi = efi
        self._loader = machine.site.config.boot_loader

    async def network_boot(self) -> BootPlan | None:
        """Try the network cards one after the other; None when the script leaves booting to the disk.

        :raises BootError: when no card found anything to start.
        :raises StartVolume: when the script starts from a volume.
        :raises StartImage: when it starts from an image.
        :raises Reboot: when it ends so.
        """
        failures = []
        for mac in self._machine.spec.macs:
            url = script_url(self._machine.site.config.boot_url, self._machine.spec, mac, HOST)
            try:
                script = await self._fetch(url)
            except BootError as error:
                failures.append(str(error))
                continue
            if reader := boot_files.READERS.get(self._loader):
                return await self._load(reader(url, script))
            try:
                return await ScriptRun(self._variables(mac), self._fetch, self._probe).boot(url, script)
            except LocalBoot:
                return None
        raise BootError("; ".join(failures))

    async def _load(self, plan: BootPlan | None) -> BootPlan | None:
        """Make sure that the files of a plan are there."""
        for url in (plan.kernel, *plan.initrds) if plan else ():
            await self._probe(url)
        return plan

    def _variables(self, mac: str) -> dict[str, str]:
        spec = self._machine.spec
        macs = {f"net{number}/mac": address for number, address in enumerate(spec.macs)}
        return {
            **macs,
            "mac": mac,
            "netX/mac": mac,
            "uuid": str(spec.uuid),
            "serial": spec.name,
            "manufacturer": "Ingot",
            "product": "rack",
            "buildarch": "x86_64",
            "platform": "efi" if self._efi else "pcbios",
        }

    async def _fetch(self, url: str) -> str:
        return await self._request("GET", url)

    async def _probe(self, url: str) -> None:
        await self._request("HEAD", url)

    async def _request(self, method: str, url: str) -> str:
        self._machine.log(f"{method} {url}")
        return await in_thread(self._machine.site.quick, _request, method, url, self._loader)


def _request(method: str, url: str, loader: str) -> str:
    headers = {"User-Agent": _USER_AGENTS[loader]}
    try:
        answer = requests.request(
            method, url, timeout=FETCH_TIMEOUT, headers=headers, stream=True, allow_redirects=True
        )
        with answer:
            if method == "HEAD" and answer.status_code in (405, 501):
                # The server has the file but does not do HEAD: fetch it, which is what iPXE would do anyway.
                return _request("GET", url, loader) and ""
            if answer.status_code != 200:
                raise CommandFailed(f"{url}: HTTP {answer.status_code}")
            return answer.content.decode("utf-8", "replace")
    except requests.RequestException as error:
        raise CommandFailed(f"{url}: {type(error).__name__}") from error


class ScriptRun:
    """One run of a script and of those that it chains to."""

    def __init__(
        self,
        variables: dict[str, str],
        fetch: Callable[[str], Awaitable[str]],
        probe: Callable[[str], Awaitable[None]],
    ) -> None:
        self._variables = variables
        self._fetch = fetch
        self._probe = probe
        self._kernel: tuple[str, list[str]] | None = None
        self._initrds: list[str] = []
        self._left = MAX_COMMANDS
        self._base = ""

    async def boot(self, url: str, script: str) -> BootPlan | None:
        """Run a script; return the kernel it boots, or None when it ends without one."""
        try:
            return await self._run(url, script)
        except ScriptEnd:
            return None

    async def _run(self, url: str, script: str) -> BootPlan | None:
        lines = [line.strip() for line in script.splitlines()]
        if not lines or not lines[0].startswith("#!ipxe"):
            raise BootError(f"{url}: not an iPXE script (its first line is not #!ipxe)")
        labels = {
            line[1:].split()[0]: number for number, line in enumerate(lines) if line[1:].strip() and line[0] == ":"
        }
        self._base, position = url, 1
        while position < len(lines):
            line, position = lines[position], position + 1
            if not line or line[0] in "#:":
                continue
            outcome = await self._line(line)
            self._base = url
            if isinstance(outcome, BootPlan):
                return outcome
            if isinstance(outcome, str):
                if outcome not in labels:
                    raise BootError(f"{url}: goto {outcome}: no such label")
                position = labels[outcome]
        return None

    async def _line(self, line: str) -> BootPlan | str | None:
        """Run the commands of a line; return what boots, the label to go to, or None to go on."""
        first, *rest = _OPERATORS.split(line)
        outcome, failure = await self._attempt(first)
        for operator, command in zip(rest[::2], rest[1::2], strict=True):
            if outcome is not None:
                break
            if (operator == "||") == (failure is not None):
                outcome, failure = await self._attempt(command)
        if failure is not None:
            raise failure
        return outcome

    async def _attempt(self, command: str) -> tuple[BootPlan | str | None, CommandFailed | None]:
        self._left -= 1
        if self._left < 0:
            raise BootError(f"the script did not end after {MAX_COMMANDS} commands")
        try:
            return await self._command(self._expand(command).split()), None
        except CommandFailed as failure:
            return None, failure

    async def _command(self, words: list[str]) -> BootPlan | str | None:
        if not words or words[0] in _NO_EFFECT:
            return None
        name, arguments = words[0], _drop_options(words[1:])
        action = _COMMANDS.get(name)
        if action is None:
            raise CommandFailed(f"{self._base}: {name}: command not found")
        return await action(self, arguments)

    def _expand(self, text: str) -> str:
        while match := _VARIABLE.search(text):
            text = text[: match.start()] + self._value(match[1]) + text[match.end() :]
        return text

    def _value(self, expression: str) -> str:
        name, _, kind = expression.partition(":")
        value = self._variables.get(name, "")
        return value.replace(":", _MAC_SEPARATORS.get(kind, ":"))

    def _url(self, arguments: list[str], command: str) -> str:
        if not arguments:
            raise CommandFailed(f"{self._base}: {command}: no URL given")
        return urljoin(self._base, arguments[0])

    async def _do_set(self, arguments: list[str]) -> None:
        if arguments:
            self._variables[arguments[0].partition(":")[0]] = " ".join(arguments[1:])

    async def _do_isset(self, arguments: list[str]) -> None:
        if not arguments:
            raise CommandFailed("isset: empty")

    async def _do_iseq(self, arguments: list[str]) -> None:
        if len(arguments) != 2 or arguments[0] != arguments[1]:
            raise CommandFailed(f"iseq: {arguments}: not equal")

    async def _do_goto(self, arguments: list[str]) -> str:
        return arguments[0] if arguments else ""

    async def _do_kernel(self, arguments: list[str]) -> None:
        url = self._url(arguments, "kernel")
        await self._probe(url)
        self._kernel = (url, arguments[1:])

    async def _do_initrd(self, arguments: list[str]) -> None:
        url = self._url(arguments, "initrd")
        await self._probe(url)
        self._initrds.append(url)

    async def _do_imgargs(self, arguments: list[str]) -> None:
        if self._kernel is None:
            raise CommandFailed("imgargs: no kernel")
        self._kernel = (self._kernel[0], arguments[1:])

    async def _do_boot(self, arguments: list[str]) -> BootPlan:
        if self._kernel is None:
            raise CommandFailed(f"{self._base}: boot: no kernel was loaded")
        url, words = self._kernel
        return BootPlan(url, tuple(self._initrds), parse_arguments(words))

    async def _do_chain(self, arguments: list[str]) -> BootPlan | None:
        url = self._url(arguments, "chain")
        script = await self._fetch(url)
        if not script.startswith("#!ipxe"):
            return BootPlan(url, tuple(self._initrds), parse_arguments(arguments[1:]))
        return await self.boot(url, script)

    async def _do_sleep(self, arguments: list[str]) -> None:
        await asyncio.sleep(float(arguments[0]) if arguments else 0)

    async def _do_sanboot(self, arguments: list[str]) -> None:
        """Start from a drive: without a URL the machine's own disk, else the volume or image there."""
        if not arguments:
            raise LocalBoot
        if arguments[0].startswith(("http://", "https://")):
            await self._probe(arguments[0])
            raise StartImage(arguments[0])
        try:
            raise volumes.StartVolume(volumes.volume(arguments[0], self._variables))
        except volumes.VolumeError as error:
            raise CommandFailed(f"{self._base}: sanboot: {error}") from error

    async def _do_reboot(self, arguments: list[str]) -> None:
        raise Reboot

    async def _do_exit(self, arguments: list[str]) -> None:
        if arguments and arguments[0] != "0":
            raise CommandFailed(f"{self._base}: exit {arguments[0]}")
        raise ScriptEnd


_MAC_SEPARATORS = {"hexhyp": "-", "hexraw": ""}

_COMMANDS: dict[str, Callable[[ScriptRun, list[str]], Awaitable[BootPlan | str | None]]] = {
    "boot": ScriptRun._do_boot,
    "chain": ScriptRun._do_chain,
    "exit": ScriptRun._do_exit,
    "goto": ScriptRun._do_goto,
    "imgargs": ScriptRun._do_imgargs,
    "imgfetch": ScriptRun._do_initrd,
    "initrd": ScriptRun._do_initrd,
    "iseq": ScriptRun._do_iseq,
    "isset": ScriptRun._do_isset,
    "kernel": ScriptRun._do_kernel,
    "module": ScriptRun._do_initrd,
    "reboot": ScriptRun._do_reboot,
    "sanboot": ScriptRun._do_sanboot,
    "set": ScriptRun._do_set,
    "sleep": ScriptRun._do_sleep,
}


def _drop_options(words: list[str]) -> list[str]:
    words = list(words)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option in _OPTIONS_WITH_VALUE and words:
            words.pop(0)
    return words
