#!/usr/bin/env python3
"""Private MariaDB, PostgreSQL and RabbitMQ servers for tests, beside whatever the machine already runs.

    devstack/services.py run -- COMMAND   start the servers, run the command, stop them; exits as COMMAND did
    devstack/services.py start DIRECTORY  start them in the background, print the variables to export
    devstack/services.py stop DIRECTORY   stop what `start DIRECTORY` started
    devstack/services.py install          only install what is missing (apt, with sudo unless root calls)

Every server listens on a port of 127.0.0.1 that no outgoing connection takes, keeps its files in one temporary
directory, and runs without privileges when root starts it (as the caller otherwise). They are tuned for temporary data:
nothing is synced to disk, a power cut loses the lot. The kernel ends them if this program is killed: no server stays
behind.
Their addresses, each with a password of its own, are in the environment of COMMAND:

    INGOT_TEST_MYSQL_URL  INGOT_TEST_MYSQLCLIENT_URL  INGOT_TEST_POSTGRESQL_URL
    INGOT_TEST_RABBIT_URL  INGOT_TEST_RABBIT_TLS_URL  INGOT_TEST_RABBIT_CONTROL (a command: its rabbitmqctl)

Only the standard library is used: the servers are needed before there is an environment to install into.
"""

import argparse
import contextlib
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

from rack import ports
from servers import SERVERS, UNPRIVILEGED, Server, Site, binary, hand_over

SLOWNESS = float(os.environ.get("INGOT_TEST_PATIENCE", "1"))  # as tests/patience.py; the gate sets it
START_TIMEOUT_S = 120 * SLOWNESS
STOP_TIMEOUT_S = 30 * SLOWNESS
PROBE_TIMEOUT_S = 5
VARIABLES_FILE = "variables"
PID_FILE = "pid"
TOOLS = {"ipmitool": "ipmitool", "openssl": "openssl", "docker-registry": "docker-registry", "openipmi": "ipmi_sim"}
"""Package -> a program of it, which tests run."""


class ServiceError(Exception):
    """A server could not be installed, started or stopped; the message says which and where its log is."""


def install() -> None:
    """Install missing servers with apt, without letting Debian start its own instances of them."""
    missing = [s.package for s in SERVERS if not all(binary(name) for name in s.binaries)]
    missing += [package for package, program in TOOLS.items() if not shutil.which(program)]
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise ServiceError(f"{', '.join(missing)} not found and no apt-get to install it: install it by hand")
    library = pathlib.Path(__file__).with_name("lib.sh")
    command = ["bash", "-euc", '. "$0" && install_packages "$@"', str(library), *missing]
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        raise ServiceError(f"{', '.join(missing)} could not be installed")


def say(text: str) -> None:
    print(f"services: {text}", file=sys.stderr, flush=True)


def as_server(command: list[str]) -> list[str]:
    """Return the command, run without privileges and ended by the kernel when its parent ends."""
    drop = ["--reuid", UNPRIVILEGED, "--regid", "nogroup", "--clear-groups"] if os.geteuid() == 0 else []
    return ["setpriv", *drop, "--pdeathsig", "TERM", *command]


class Instance:
    """One started server and what belongs to it."""

    def __init__(self, server: Server, root: pathlib.Path, port: int) -> None:
        self.server = server
        self.site = Site(root / server.name.lower(), port)
        self.log = self.site.directory / "output.log"
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start the server, for the first time or after :meth:`stop`. The kernel ends it with the calling thread."""
        if not self.site.directory.exists():
            self._prepare()
        if self.server.helper:
            self._processes.append(self._spawn(self.server.helper(self.site)))
        self._processes.append(self._spawn(self.server.command(self.site)))

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if self._processes[-1].poll() is not None:
                raise ServiceError(f"{self.server.name} ended while it started: {self._complaint()}")
            if time.monotonic() > deadline:
                raise ServiceError(f"{self.server.name}: no answer in {START_TIMEOUT_S:.0f} s: {self._complaint()}")
            time.sleep(0.2)

    def stop(self) -> None:
        """End the server and keep its files."""
        while self._processes:
            stop_group(self._processes.pop(), self.server.stop_signal)

    @property
    def url(self) -> str:
        return self.server.url(self.site)

    def _prepare(self) -> None:
        self.site.directory.mkdir(mode=0o700)
        hand_over(self.site.directory)
        for command in self.server.prepare(self.site):
            if self._spawn(command).wait():
                raise ServiceError(f"{self.server.name} could not be prepared: {self._complaint()}")

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        inherited = {name: os.environ[name] for name in ("LANG", "TZ") if name in os.environ}
        environment = {
            **inherited,
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self.site.directory),
            **self.server.environment(self.site),
        }
        with self.log.open("ab") as log:
            return subprocess.Popen(
                as_server(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.site.directory,
                env=environment,
                start_new_session=True,
            )

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.site.port), PROBE_TIMEOUT_S) as connection:
                connection.sendall(self.server.hello)
                answer = connection.recv(1)
        except OSError:
            return False
        return bool(answer) and answer.startswith(self.server.answer)

    def _complaint(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-15:]
        return "\n".join([f"the end of its log ({self.log}):", *lines])


def stop_group(process: subprocess.Popen[bytes], number: int) -> None:
    """End a process we started by a signal; what does not listen is killed together with its session."""
    process.send_signal(number)
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def servers(chosen: Sequence[Server] = SERVERS) -> Iterator[list[Instance]]:
    """Yield servers that are ready; they and their files are gone afterwards."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="ingot-services-"))
    hand_over(root)
    instances = [Instance(server, root, ports.tcp()) for server in chosen]
    began = time.monotonic()
    try:
        for instance in instances:
            instance.start()
        for instance in instances:
            instance.wait_until_ready()
        say(f"{', '.join(s.name for s in chosen)} ready after {time.monotonic() - began:.1f} s in {root}")
        yield instances
    finally:
        for instance in reversed(instances):
            instance.stop()
        shutil.rmtree(root, ignore_errors=True)


def variables_of(instances: list[Instance]) -> dict[str, str]:
    """Return the variables by which tests find the servers."""
    found = {instance.server.variable: instance.url for instance in instances}
    for instance in instances:
        found |= {name: url(instance.site) for name, url in instance.server.more.items()}
    return found


def run(command: list[str]) -> int:
    """Run a command beside the servers and answer its status."""
    with servers() as started, subprocess.Popen(command, env={**os.environ, **variables_of(started)}) as process:
        try:
            return process.wait()
        except BaseException:
            process.terminate()
            raise


def serve(directory: pathlib.Path) -> int:
    """Hold the servers until a signal comes: the background half of `start`."""
    with servers() as started:
        partial = directory / f"{VARIABLES_FILE}.new"
        lines = [f"export {name}={shlex.quote(url)}\n" for name, url in variables_of(started).items()]
        partial.write_text("".join(lines))
        partial.rename(directory / VARIABLES_FILE)
        signal.pause()
    return 0


def start(directory: pathlib.Path) -> int:
    """Start the servers in the background and print shell lines that export their addresses."""
    directory.mkdir(parents=True, exist_ok=True)
    variables = directory / VARIABLES_FILE
    variables.unlink(missing_ok=True)
    with (directory / "output.log").open("wb") as log:
        holder = subprocess.Popen(
            [sys.executable, __file__, "serve", str(directory)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    (directory / PID_FILE).write_text(str(holder.pid))
    while not variables.exists():
        if holder.poll() is not None:
            raise ServiceError((directory / "output.log").read_text(errors="replace").strip())
        time.sleep(0.1)
    print(variables.read_text(), end="")
    return 0


def stop(directory: pathlib.Path) -> int:
    """Stop what `start` holds in this directory; a pid that another process has by now is left alone."""
    pid_file = directory / PID_FILE
    if not pid_file.exists():
        raise ServiceError(f"nothing was started in {directory}")
    pid = int(pid_file.read_text())
    process = pathlib.Path(f"/proc/{pid}")
    command_line = (process / "cmdline").read_bytes().split(b"\0") if process.exists() else []
    if b"serve" in command_line and os.fsencode(directory) in command_line:
        os.kill(pid, signal.SIGTERM)
        while process.exists():
            time.sleep(0.1)
    pid_file.unlink()
    (directory / VARIABLES_FILE).unlink(missing_ok=True)
    return 0


def parse(arguments: list[str]) -> argparse.Namespace:
    top = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    actions = top.add_subparsers(dest="action", required=True)
    actions.add_parser("install", help="install missing servers with apt")
    actions.add_parser("run", help="run a command beside the servers").add_argument("command", nargs="+")
    in_directory = {
        "start": "start in the background",
        "stop": "stop them",
        "serve": "the other half of start",
    }
    for action, text in in_directory.items():
        parser = actions.add_parser(action, help=text)
        parser.add_argument("directory", type=lambda given: pathlib.Path(given).resolve())
    return top.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # An exception unwinds the `with` blocks, which stop the servers.
        signal.signal(number, lambda received, frame: sys.exit(128 + received))
    try:
        if options.action == "run":
            install()
            return run(options.command)
        if options.action == "start":
            install()
            return start(options.directory)
        if options.action == "install":
            install()
            return 0
        return {"serve": serve, "stop": stop}[options.action](options.directory)
    except ServiceError as error:
        say(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
