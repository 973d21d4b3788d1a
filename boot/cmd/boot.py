"""The command ingot-boot, which answers DHCP and TFTP of machines, or says what another DHCP server has to.

    ingot-boot [run]            answers until it is stopped; SIGHUP has it read its options again
    ingot-boot check            finds out whether it could, and says what is wrong
    ingot-boot print dnsmasq    prints lines for an operator's own DHCP server: dnsmasq, kea or dhcpd

Exit status as that of services: 0 after an orderly stop, 78 when something in the configuration is to be corrected.
"""

import pathlib
import sys
import tempfile
import threading
from collections.abc import Sequence

from oslo_config import cfg
from oslo_log import log

from ingot.boot import dnsmasq, handover, server, settings
from ingot.boot.machines import Machines
from ingot.common import boot_loaders, errors, signals
from ingot.common.conf import start
from ingot.db import schema
from ingot.db.engine import Database

LOG = log.getLogger(__name__)

_DESCRIPTION = (
    "Boot services of Ingot: DHCP and TFTP for machines that boot from the network, by a dnsmasq of its own. print has "
    "the lines for a DHCP server of yours instead."
)

_OPTIONS = (
    cfg.StrOpt(
        "command",
        positional=True,
        required=False,
        default="run",
        choices=["run", "check", "print"],
        help="run (default): answer DHCP and TFTP. check: find out whether that works. print: show lines for another "
        "DHCP server.",
    ),
    cfg.StrOpt(
        "server",
        positional=True,
        required=False,
        default="dnsmasq",
        choices=list(handover.FORMS),
        help="For print: the DHCP server that the lines are for; dnsmasq by default.",
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    :returns: the exit status, as the module's first lines say.
    """

    def run() -> int:
        begun = start.Start("ingot-boot", arguments, cli_opts=_OPTIONS, description=_DESCRIPTION)
        conf = begun.finish(quiet=begun.conf.command != "run")
        if conf.command == "print":
            sys.stdout.write(handover.FORMS[conf.server](settings.read(conf, needs_networks=False)))
            return 0
        if conf.command == "check":
            _check(*_read(conf))
            print("ingot-boot can run with this configuration.")
            return 0
        return _Service(conf).run()

    return start.run("ingot-boot", run)


_UNKNOWN = "not known yet"


class _Service:
    """What runs.

    :raises ConfigurationError: it cannot run with these options.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._settings, command = _prepare(conf)
        self._server = server.Server(command)
        self._db = Database(conf)
        self._machines = Machines(self._db, self._settings.directory / server.MACHINES)
        self._stopped = threading.Event()
        self._trouble = _UNKNOWN

    def run(self) -> int:
        """Answer until a signal says stop; return the exit status."""
        self._follow()
        self._server.start()
        follower = threading.Thread(target=self._keep_following, name="follow", daemon=True)
        follower.start()
        LOG.info("DHCP and TFTP are for machines on %s", ", ".join(self._settings.interfaces))
        code = signals.wait_for_stop(self._stopped, self._conf, self._reload)
        self._server.stop()
        return code

    def _keep_following(self) -> None:
        while not self._stopped.wait(self._conf.boot_services.refresh_interval):
            self._follow()

    def _follow(self) -> None:
        """Have dnsmasq learn which machines are enrolled; without a database, it goes on with those of before."""
        try:
            if self._trouble:
                schema.require_current(self._db)
            if self._machines.follow():
                self._server.read_again()
            self._trouble = ""
        except errors.IngotError as exc:
            if exc.message != self._trouble:
                LOG.warning("Which machines are enrolled cannot be read; those of before are answered: %s", exc.message)
            self._trouble = exc.message
        except Exception:  # the edge of a thread
            LOG.exception("Following which machines are enrolled failed unexpectedly")

    def _reload(self) -> None:
        """Read the options again; what cannot be used changes nothing."""
        try:
            if not self._conf.reload_config_files():
                return
            self._settings, command = _prepare(self._conf)
        except (errors.IngotError, OSError) as exc:  # the second: no space for the files of the check
            LOG.warning("DHCP goes on as before: %s", exc)
            return
        self._machines = Machines(self._db, self._settings.directory / server.MACHINES)
        self._server.restart(command)


def _prepare(conf: cfg.ConfigOpts) -> tuple[settings.Settings, list[str]]:
    """Write the files of dnsmasq; return what it is started with. What it refuses changes none of them."""
    found, loaders = _read(conf)
    _check(found, loaders)
    command = server.build_command(found)
    server.prepare(found, loaders)
    return found, command


def _read(conf: cfg.ConfigOpts) -> tuple[settings.Settings, dict[str, pathlib.Path]]:
    """Return what the options say, and the loaders that this host has."""
    found = settings.read(conf)
    _warn(found)
    others = dnsmasq.list_others(found.chain)
    loaders = boot_loaders.find(conf, dnsmasq.list_needed(found.chain), others)
    if missing := [name for name in others if name not in loaders]:
        LOG.info(
            "%s They are for other machines than these options are for.", boot_loaders.describe_missing(conf, missing)
        )
    return found, loaders


def _check(found: settings.Settings, loaders: dict[str, pathlib.Path]) -> None:
    """Have dnsmasq check files that are written somewhere else: the service's own stay as they are, and its user's."""
    with tempfile.TemporaryDirectory() as place:
        pathlib.Path(place).chmod(0o755)  # dnsmasq runs as another user
        trial = found._replace(directory=pathlib.Path(place, "boot"))
        command = server.build_command(trial)
        server.prepare(trial, loaders)
        server.check(command)


def _warn(found: settings.Settings) -> None:
    """Log what may be right only later, or for some machines."""
    for name in found.interfaces:
        if not pathlib.Path("/sys/class/net", name).exists():
            LOG.warning("[boot_services] interfaces: this host has no %s now; DHCP is answered there when it has", name)
    if found.api.startswith("https:"):
        LOG.warning(
            "Machines are to fetch scripts from %s: GRUB cannot, and iPXE only if it was built with the authority of "
            "its certificate. See [service_catalog] endpoint_override",
            found.api,
        )


if __name__ == "__main__":
    sys.exit(main())
