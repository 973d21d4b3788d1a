"""How a command starts: it reads its options, and what keeps it from starting is said all at once.

A supervisor learns from the exit code whether it is of use to start the command again.
"""

import contextlib
import enum
import os
import pathlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn, ParamSpec, TypeVar

from oslo_config import cfg
from oslo_log import log

from ingot.common import errors, masking
from ingot.common.conf import files, opts
from ingot.common.conf.ironic import Verdict

LOG = log.getLogger(__name__)

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


class Exit(enum.IntEnum):
    """Exit codes, those of sysexits.h: systemd's RestartPreventExitStatus=78 keeps a service down until it is corrected."""

    DONE = 0
    FAILED = 1
    TRY_AGAIN = 75
    CONFIGURATION = 78


_UMASK = 0o027
"""Log files and directories are for the service's user and group only."""


class Start:
    """The options of a command, and what is wrong with them.

    :param arguments: the command line without the program's name; by default, that of this process.
    :param others: as :func:`ingot.common.conf.opts.load` has them.
    """

    def __init__(
        self,
        prog: str,
        arguments: Sequence[str] | None = None,
        named: Sequence[str] | None = None,
        cli_opts: Sequence[cfg.Opt] = (),
        into: cfg.ConfigOpts | None = None,
    ) -> None:
        self._refusals: list[str] = []
        self._catalog = files.Catalog(opts.GROUPS)
        given = sys.argv[1:] if arguments is None else arguments
        self.files = files.list_files(given, prog, named)
        self.settings = [setting for file in self.files for setting in files.read(file, self._refusals)]
        self._catalog.add_plugins(self.settings)
        bad = list(files.check_values(self.settings, self._catalog))
        self._refusals += [message for _declared, message in bad]
        with self.collect():
            self.conf = opts.parse(given, prog, named, cli_opts, into)
        if not hasattr(self, "conf"):
            self.refuse()
        for declared, _message in bad:  # so that all else can be looked at
            with contextlib.suppress(cfg.NoSuchOptError, cfg.NoSuchGroupError):
                group = None if declared.group == "DEFAULT" else declared.group
                self.conf.set_override(declared.opt.dest, declared.opt.default, group)
        self._refusals += opts.list_bad_values(self.conf)
        self.attempt(opts.check, self.conf)

    @contextlib.contextmanager
    def collect(self) -> Iterator[None]:
        """Keep what is refused within for the one message that says everything."""
        try:
            yield
        except errors.ConfigurationError as exc:
            self._refusals += exc.messages

    def attempt(self, check: Callable[_Args, _Result], *args: _Args.args, **kwargs: _Args.kwargs) -> _Result | None:
        """Return what a function returns that may refuse options; None if it does."""
        with self.collect():
            return check(*args, **kwargs)
        return None

    def judge(self) -> list[files.Finding]:
        """Return what becomes of options that are not used as they stand, the worst first."""
        order = list(Verdict)
        return sorted(files.judge(self.settings, self._catalog), key=lambda finding: order.index(finding.verdict))

    def sets(self, group: str, *names: str) -> bool:
        """Return whether a file sets one of these options to something."""
        return any(setting.group == group and setting.value and setting.name in names for setting in self.settings)

    @property
    def refusals(self) -> list[str]:
        """All that was refused until now."""
        return list(dict.fromkeys(self._refusals))

    def refuse(self) -> NoReturn:
        """Raise what was refused until now.

        :raises ConfigurationError: always.
        """
        raise errors.ConfigurationErrors(self.refusals)

    def finish(self) -> cfg.ConfigOpts:
        """Return the options, when logs are set up and everything that is odd in the files is in them.

        :raises ConfigurationError: something was refused.
        """
        findings = self.judge()
        self._refusals += [str(finding) for finding in findings if finding.verdict is Verdict.REFUSED]
        self.attempt(set_up_logs, self.conf)
        if self._refusals:
            self.refuse()
        for finding in findings:
            quiet = finding.verdict in (Verdict.RENAMED, Verdict.IGNORED)
            LOG.log(log.INFO if quiet else log.WARNING, "Configuration: %s", finding)
        return self.conf


def set_up_logs(conf: cfg.ConfigOpts) -> None:
    """Begin to write logs, into files that only the service's user and group can read.

    :raises ConfigurationError: that is not possible.
    """
    os.umask(_UMASK)
    file = pathlib.Path(conf.log_dir or "", conf.log_file) if conf.log_file else None
    try:
        if file is not None or conf.log_dir:
            folder = file.parent if file is not None else pathlib.Path(conf.log_dir)
            folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        log.setup(conf, "ingot")
    except (OSError, log.LogConfigError) as exc:
        option = "log_config_append" if isinstance(exc, log.LogConfigError) else "log_dir and log_file"
        raise errors.ConfigurationError(
            option=option,
            value=str(conf.log_config_append or file or conf.log_dir),
            allowed=f"Logs cannot be written: {getattr(exc, 'strerror', None) or exc}.",
        ) from exc
    if file is not None and file.exists():
        with contextlib.suppress(OSError):  # another user's, whose choice it is
            file.chmod(0o640)
    masking.mask_logs()


def run(prog: str, work: Callable[[], int]) -> int:
    """Do the work of a command, and report what keeps it from it as the lines of one message."""
    try:
        return work()
    except errors.IngotError as exc:
        code = exit_code(exc)
        again = " This may pass: start it again later." if code == Exit.TRY_AGAIN else ""
        for line in f"{exc.message}{again}".splitlines():
            print(f"{prog}: {line}", file=sys.stderr)
        return code


def exit_code(exc: errors.IngotError) -> Exit:
    """Return the exit code that tells a supervisor whether to start a command again."""
    if isinstance(exc, errors.ConfigurationError):
        return Exit.CONFIGURATION
    return Exit.TRY_AGAIN if isinstance(exc, errors.ServiceUnavailable) else Exit.FAILED
