"""The database goes away in the middle of a request: every route, every statement of it, nothing half done."""

import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from ingot.db import models
from tests import world

_VOLATILE = frozenset(("id", "uuid", "created_at", "updated_at", "revision", "outbox", "outbox_at", "due_at"))
_MOST = 60
STREAM = "text/event-stream"  # does not end


class Outages(world.WorldCase):
    def setUp(self) -> None:
        super().setUp()
        self.left: int | None = None
        sa.event.listen(self.db.engine, "before_cursor_execute", self._reach)
        sa.event.listen(self.db.engine, "commit", self._reach)
        self.file = pathlib.Path(str(self.db.url.database))
        self.db.dispose()
        shutil.copyfile(self.file, self.file.with_suffix(".before"))

    def _reach(self, *_about: Any) -> None:
        """Count a statement or an end of a transaction; fail when none is left."""
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise sa.exc.OperationalError("a statement", {}, Exception("the database is away"))

    def restore(self) -> None:
        """Restore the database as it was before the first request."""
        self.left = None
        self.db.dispose()
        for name in ("-wal", "-shm"):
            self.file.with_name(self.file.name + name).unlink(missing_ok=True)
        shutil.copyfile(self.file.with_suffix(".before"), self.file)

    def kept(self) -> dict[str, list[Any]]:
        """Return what the database holds, but for what differs each time."""
        self.left = None
        tables = {}
        with self.db.single() as connection:
            for table in models.Base.metadata.sorted_tables:
                names = [column.name for column in table.c if column.name not in _VOLATILE]
                rows = connection.execute(sa.select(*(table.c[name] for name in names)))
                tables[table.name] = sorted(map(repr, rows))
        return tables

    def requests(self) -> Iterator[tuple[str, str, Any]]:
        for route, method, operation in self.operations():
            if operation.answer.media != STREAM:
                yield method, self.url(route.path), self.body(route.path, method)

    def test_are_reported_as_such_and_leave_nothing_half_done(self) -> None:
        before = self.kept()
        outages = 0
        for method, url, body in self.requests():
            self.restore()
            whole = self.api(method, url, body)
            after = self.kept()
            for statements in range(_MOST):
                self.restore()
                self.left = statements
                answer = self.api(method, url, body)
                survived = self.left >= 0
                about = f"{method} {url}, away after {statements} statements: {answer}"
                if survived:
                    self.assertEqual(whole.status, answer.status, about)
                    break
                outages += 1
                self.assertIn(self.kept(), (before, after), about)
                if answer.status != whole.status:  # a wake-up that could not be sent after the end does no harm
                    self.assertEqual((503, "5"), (answer.status, answer.headers.get("Retry-After")), about)
            else:
                self.fail(f"{method} {url} takes more than {_MOST} statements")
        self.assertGreater(outages, 200)
