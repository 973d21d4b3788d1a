"""Connections to PostgreSQL that do not wait for ever for an answer: the driver has no limit of its own."""

import time
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

_Exchange = Generator[Any, Any, Any]


def limit_waits(engine: sa.Engine, seconds: float) -> None:
    """Have an engine's connections give up on a server, and end, when it has not answered for some seconds."""
    driver: Any = engine.dialect.loaded_dbapi  # is only installed where it is used

    def wait(self: Any, gen: _Exchange, *args: object, **kwargs: object) -> object:
        try:
            return driver.Connection.wait(self, _limit(gen, seconds), *args, **kwargs)
        except _NoAnswerError as exc:
            self.pgconn.finish()  # a late answer would be taken for that to the next question
            raise driver.OperationalError(f"no answer for {seconds:.0f} s") from exc

    limited: Any = type("Limited", (driver.Connection,), {"wait": wait})

    def connect(_dialect: object, _record: object, arguments: Sequence[object], options: Mapping[str, object]) -> Any:
        return limited.connect(*arguments, **options)

    sa.event.listen(engine, "do_connect", connect)


class _NoAnswerError(Exception):
    """The server is frozen, or the line swallows everything."""


def _limit(exchange: _Exchange, seconds: float) -> _Exchange:
    """Wrap an exchange with the server, which asks for readiness and hears every now and then that there is none."""
    until = time.monotonic() + seconds
    try:
        awaited = exchange.send(None)
        while True:
            ready = yield awaited
            if not ready and time.monotonic() > until:
                raise _NoAnswerError
            awaited = exchange.send(ready)
    except StopIteration as end:
        return end.value
