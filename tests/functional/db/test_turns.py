"""Turns, on the servers."""

from typing import ClassVar

from tests.unit.db import test_turns


class TurnOnMySQL(test_turns.TurnTest):
    backend: ClassVar[str] = "mysql"


class TurnOnPostgreSQL(test_turns.TurnTest):
    backend: ClassVar[str] = "postgresql"
