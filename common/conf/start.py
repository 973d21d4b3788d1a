"""How a command starts: it reads its options, and what keeps it from starting is said all at once.

A supervisor learns from the exit code whether it is of use to start the command again.
"""

import contextlib
import enum
import io
import logging
import os
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from oslo_config import cfg
from oslo_log import log

from ingot.common import errors, masking, workers
from ingot.common.conf import differences, files, opts
from ingot.common.conf.ironic import Verdict

LOG = log.getLogger(__name__)

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


class Exit(enum.IntEnum):
    """Exit codes, those of sysexits.h: with RestartPreventExitStatus=78 systemd does not start a service in vain."""

    DONE = 0
    FAILED = 1
    TRY_AGAIN = 75
    CONFIGURATION = 78


HELP = frozenset(("-h", "--help", "--version"))
"""With these, files are not read: they may be what is wrong."""

_UMASK = 0o027
"""Log files and directories are for the service's user and group only."""


# Files with other names of options are reported with all else that is to be said of them.
logging.getLogger(cfg.__name__).addFilter(lambda record: "is deprecated. Use option" not in record.getMessage())


class Start:
    """The options of a command, and what is wrong with them.

    :param prog: name of the command.
    :param description: for its --help.
    :param arguments: the command line without the program's name; by default, that of this process.
    :param named: configuration files to read instead of the default ones.
    :param logs: whether the command writes logs.
    :param others: as :func:`ingot.common.conf.opts.parse` has them.
    """

    def __init__(
        self,
        prog: str,
        arguments: Sequence[str] | None = None,
        named: Sequence[str] | None = None,
        logs: bool = True,
        **others: Any,
    ) -> None:
        self.refusals = errors.Refusals()
        self.warnings: list[str] = []
        given = sys.argv[1:] if arguments is None else list(arguments)
        line = files.read_command_line(given)
        if not HELP.isdisjoint(given):
            opts.parse(line.rest, prog, [], **others)
        self.files = files.list_files(line, prog, named)
        self._catalog = files.Catalog(opts.GROUPS)
        self._settings = [setting for file in self.files for setting in files.read(file, self.refusals.messages)]
        unreadable = bool(self.refusals.messages)
        self._catalog.add_plugins(self._settings)
        bad = list(files.check_values(self._settings, self._catalog))
        self.refusals.messages += [message for _declared, message in bad]
        if unreadable:
            self.refusals.finish()
        self.conf = self._parse(given, prog, named, **others)
        for declared, _message in bad:
            opts.use_default(self.conf, declared.group, declared.opt)
        self.refusals.messages += opts.replace_bad_values(self.conf)
        self.attempt(opts.check, self.conf)
        if logs:
            self.attempt(set_up_logs, self.conf)

    def _parse(self, *args: Any, **others: Any) -> cfg.ConfigOpts:
        """Have oslo.config read the same.

        Of options that are on the command line, too, it reports the first bad value, and exits.
        """
        stderr = io.StringIO()
        try:
            with contextlib.redirect_stderr(stderr) if self.refusals.messages else contextlib.nullcontext():
                return opts.parse(*args, **others)
        except SystemExit as exc:
            if exc.code == 1:
                self.refusals.finish()
            sys.stderr.write(stderr.getvalue())
            raise
        except errors.ConfigurationError as exc:
            self.refusals.messages += exc.messages
            raise errors.ConfigurationErrors(self.refusals.messages) from exc

    def attempt(self, check: Callable[_Args, _Result], *args: _Args.args, **kwargs: _Args.kwargs) -> _Result | None:
        """Return what a function returns that may refuse options; None if it does."""
        try:
            return check(*args, **kwargs)
        except errors.ConfigurationError as exc:
            self.refusals.messages += exc.messages
        except cfg.NoSuchOptError as exc:  # what a value gets that names another option
            self.refusals.messages.append(f"{exc.opt_name}: {files.NO_SUCH_NAME}")
        except cfg.Error as exc:  # of an option of a library, from the environment
            self.refusals.messages.append(f"{exc}.")
        return None

    def complete(self, check: Callable[_Args, _Result], *args: _Args.args, **kwargs: _Args.kwargs) -> None:
        """Check what the command finds out on its own later, if a message is to be complete: something is refused."""
        if self.refusals.messages:
            self.attempt(check, *args, **kwargs)

    def list_findings(self) -> list[files.Finding]:
        """Return what becomes of options that are not used as they stand, the worst first."""
        order = list(Verdict)
        found = [*files.judge(self._settings, self._catalog), *differences.find(self.conf, self._settings)]
        return sorted(found, key=lambda finding: order.index(finding.verdict))

    def has_set(self, group: str, *names: str) -> bool:
        """Return whether a file sets one of these options to something."""
        return any(one.group == group and one.value and one.name in names for one in self._settings)

    def finish(self, quiet: bool = False) -> cfg.ConfigOpts:
        """Return the options, when what is odd in the files is in the log.

        :param quiet: the command is no service: what does not concern it is not its business.
        :raises ConfigurationError: something was refused.
        """
        findings = [] if quiet else self.list_findings()
        self.refusals.messages += [str(finding) for finding in findings if finding.verdict is Verdict.REFUSED]
        self.refusals.finish()
        for finding in findings:
            level = log.INFO if finding.verdict in (Verdict.RENAMED, Verdict.IGNORED) else log.WARNING
            LOG.log(level, "Configuration: %s", finding)
        for warning in self.warnings:
            LOG.warning("Configuration: %s", warning)
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
    _introduce()


def _introduce() -> None:
    """Log what this process is to the supervisor that has started it, which writes no logs itself."""
    if before := os.environ.pop(workers.BEFORE, None):
        LOG.error("%s", before)
    if title := os.environ.pop(workers.TITLE, None):
        LOG.info("%s runs as process %d", title, os.getpid())


def run(prog: str, work: Callable[[], int]) -> int:
    """Do the work of a command, and report what keeps it from it as the lines of one message.

    :returns: the exit code: that of the work, or one of :class:`Exit`.
    """
    try:
        return work()
    except errors.IngotError as exc:
        return report(prog, exc)


def report(prog: str, exc: errors.IngotError) -> Exit:
    """Write what keeps a command from its work, and return the exit code that says whether to try again."""
    for line in describe_refusal(exc).splitlines():
        sys.stderr.write(f"{prog}: {line}\n")
    if isinstance(exc, errors.ConfigurationError | errors.AccessRefused) and not isinstance(exc, errors.Occupied):
        return Exit.CONFIGURATION
    return Exit.TRY_AGAIN if isinstance(exc, errors.ServiceUnavailable | errors.Occupied) else Exit.FAILED


def describe_refusal(exc: errors.IngotError) -> str:
    """Return an error for an operator, who may read what clients of the API may not: hosts and users."""
    if not isinstance(exc, errors.ServiceUnavailable) or exc.__cause__ is None:
        return exc.message
    cause = str(exc.__cause__).partition("\n")[0]
    return exc.message.replace(errors.SEE_LOG, masking.mask_text(cause))
