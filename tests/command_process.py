"""A fixture for tests that run a command in their own process: what it sets there ends with the test."""

import logging
import os

import fixtures


class CommandProcess(fixtures.Fixture):
    """Keeps the process as it is: its umask, and where and how much it logs."""

    def _setUp(self) -> None:
        self.addCleanup(os.umask, os.umask(0o022))
        self.useFixture(fixtures.MonkeyPatch("oslo_log.log.setup", lambda *_arguments: None))
        root = logging.getLogger()
        self.addCleanup(setattr, root, "handlers", root.handlers[:])
        self.addCleanup(root.setLevel, root.level)
