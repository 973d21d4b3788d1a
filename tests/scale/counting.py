"""Runs ingot-conductor and counts its SQL statements: ``python -m tests.scale.counting FILE ARGUMENT ...``.

At SIGUSR1 the statements sent so far are written to FILE: how often each text, as JSON.
"""

import collections
import json
import pathlib
import signal
import sys
from typing import Any

import sqlalchemy as sa

from ingot.conductor.cmd import conductor


def main() -> int:
    report = pathlib.Path(sys.argv.pop(1))
    sent: collections.Counter[str] = collections.Counter()

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        sent[statement] += 1

    def tell(_number: int, _frame: object) -> None:
        part = report.with_suffix(".part")
        part.write_text(json.dumps(dict(sent)))
        part.rename(report)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    signal.signal(signal.SIGUSR1, tell)
    return conductor.main()


if __name__ == "__main__":
    sys.exit(main())
