"""What is different about each driver of a database: how its connections are opened, limited and encrypted."""

import datetime
import importlib
import ssl
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from ingot.common import errors

CONNECT_S = 5
"""Seconds within which a server must take a connection."""

ANSWER_S = 30
"""Seconds within which it must answer a statement. One that is frozen, or behind a line that swallows everything, must
not keep a request for ever. Migrations have no limit."""

LOCK_S = 10
"""Seconds that a statement waits for rows that another transaction has, and after which the server ends a transaction
in which nothing happens: that of a process that is frozen would keep all others from a node."""

_URLS = (
    "Use mysql+pymysql://LOGIN@HOST/NAME, mysql+mysqldb://LOGIN@HOST/NAME (both for MariaDB, too) or "
    "postgresql+psycopg://LOGIN@HOST/NAME, with user:password as LOGIN, or sqlite:////FILE."
)

Options = dict[str, Any]


def parse_url(text: str, option: str = "[database] connection") -> sa.URL:
    """Return the address of a database.

    :param option: where it stands, for messages.
    :raises ConfigurationError: it is none, of a kind that Ingot does not know, or for a driver that is not installed.
    """
    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError) as exc:
        # The text may hold a password, and what is wrong with it hides where.
        raise errors.ConfigurationError(option=option, value="***", allowed=_URLS) from exc
    # oslo.db knows a MariaDB's errors (a deadlock, a duplicate) only under the name mysql.
    url = url.set(drivername=url.drivername.replace("mariadb", "mysql", 1))
    try:
        known = (url.get_backend_name(), url.get_driver_name()) in _CONNECT_OPTIONS
    except sa.exc.NoSuchModuleError:
        known = False
    if not known:
        raise errors.ConfigurationError(option=option, value=url.render_as_string(hide_password=True), allowed=_URLS)
    try:
        url.get_dialect().import_dbapi()
    except ImportError as exc:
        raise errors.ConfigurationError(
            option=option,
            value=url.drivername,
            allowed=f"Its driver is not installed ({exc}). {_URLS} Ingot's extras mysql, mysqlclient and postgresql "
            "install those.",
        ) from exc
    return url


def connect_options(url: sa.URL, group: cfg.ConfigOpts.GroupAttr, limited: bool) -> Options:
    """Return what opens a connection besides its address. What the operator has written into that is stronger.

    :param group: the options of [database].
    :param limited: whether statements and locks are given up after a while.
    """
    options = _CONNECT_OPTIONS[url.get_backend_name(), url.get_driver_name()](url, group, limited)
    return {name: value for name, value in options.items() if name not in url.query}


def _mysql(url: sa.URL, group: cfg.ConfigOpts.GroupAttr, limited: bool) -> Options:
    session: Options = {"sql_mode": group.mysql_sql_mode, "wsrep_sync_wait": group.mysql_wsrep_sync_wait}
    session["group_concat_max_len"] = 2**20  # MySQL would cut the traits of a node at 1,024 characters
    # What one of two conditions finds among many rows is not looked up in the index of the other, which most rows meet.
    session["optimizer_switch"] = "index_merge_intersection=off"
    driver = url.get_dialect().import_dbapi().__name__
    converters = importlib.import_module(f"{driver}.converters").conversions
    moment = importlib.import_module(f"{driver}.constants.FIELD_TYPE").DATETIME
    # Both drivers take moments apart, and put them together, in Python.
    converters = {**converters, moment: datetime.datetime.fromisoformat, datetime.datetime: _quote}
    options: Options = {"connect_timeout": CONNECT_S, "conv": converters}
    if limited:
        session["innodb_lock_wait_timeout"] = LOCK_S
        options["autocommit"] = True  # as is asked for later anyway, by more statements
        options |= {"read_timeout": ANSWER_S, "write_timeout": ANSWER_S}
    settings = [f"SESSION {name} = {value!r}" for name, value in session.items() if value not in (None, "")]
    if limited:  # in a comment that only MariaDB reads: MySQL has no such setting
        settings[-1] += f" /*M!100300 , SESSION idle_transaction_timeout = {LOCK_S} */"
    return options | {"init_command": f"SET {', '.join(settings)}"}


def _quote(moment: datetime.datetime, _converters: object = None) -> str:
    return f"'{moment}'"


def _mysqlclient(url: sa.URL, group: cfg.ConfigOpts.GroupAttr, limited: bool) -> Options:
    # Of itself it reads the authority, and then verifies nothing.
    verified: Options = {"ssl_mode": "VERIFY_IDENTITY"} if {"ssl_ca", "ssl_capath"} & url.query.keys() else {}
    return _mysql(url, group, limited) | verified


def _postgresql(_url: sa.URL, _group: cfg.ConfigOpts.GroupAttr, limited: bool) -> Options:
    options: Options = {"connect_timeout": CONNECT_S}
    if limited:
        settings = {"lock_timeout": LOCK_S, "idle_in_transaction_session_timeout": LOCK_S}
        options["options"] = " ".join(f"-c {name}={seconds}s" for name, seconds in settings.items())
    return options


def _sqlite(_url: sa.URL, _group: cfg.ConfigOpts.GroupAttr, _limited: bool) -> Options:
    return {"timeout": ANSWER_S, "check_same_thread": False}


_CONNECT_OPTIONS: Mapping[tuple[str, str], Callable[[sa.URL, cfg.ConfigOpts.GroupAttr, bool], Options]] = {
    ("mysql", "pymysql"): _mysql,
    ("mysql", "mysqldb"): _mysqlclient,
    ("postgresql", "psycopg"): _postgresql,
    ("sqlite", "pysqlite"): _sqlite,
}


def teach(engine: sa.Engine, limited: bool) -> None:
    """Have an engine make connections of a better kind than its driver's own, where there is one."""
    driver = engine.dialect.loaded_dbapi
    if engine.dialect.driver == "pymysql":
        make = _without_authorities(driver)
    elif engine.dialect.driver == "psycopg" and limited:
        make = _with_limit(driver).connect
    else:
        make = driver.connect

    def connect(_dialect: object, _record: object, arguments: Sequence[object], options: Mapping[str, object]) -> Any:
        try:
            return make(*arguments, **options)
        except TypeError as exc:  # the address has a parameter of another driver
            raise errors.ConfigurationError(
                option="[database] connection", value=engine.url.drivername, allowed=f"Its driver says: {exc}."
            ) from exc

    sa.event.listen(engine, "do_connect", connect)


def _without_authorities(driver: Any) -> Any:
    """Return PyMySQL's connection that reads no certificates which it then verifies nothing by.

    Where the address says nothing about TLS, the driver encrypts if the server can, and still reads all certificates of
    the system for each connection: 20 ms.
    """
    unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE

    def context(self: Any, asked: Mapping[str, object]) -> ssl.SSLContext:
        made: ssl.SSLContext = driver.connections.Connection._create_ssl_ctx(self, asked) if asked else unverified
        return made

    return type("Connection", (driver.connections.Connection,), {"_create_ssl_ctx": context})


_Exchange = Generator[Any, Any, Any]


class _NoAnswerError(Exception):
    """The server is frozen, or the line swallows everything."""


def _with_limit(driver: Any) -> Any:
    """Return psycopg's connection that gives up on a server, and ends, when it does not answer: it has no limit."""
    seconds = ANSWER_S

    def wait(self: Any, gen: _Exchange, *args: object, **kwargs: object) -> object:
        try:
            return driver.Connection.wait(self, _limit(gen, seconds), *args, **kwargs)
        except _NoAnswerError as exc:
            self.pgconn.finish()  # a late answer would be taken for that to the next question
            raise driver.OperationalError(f"no answer for {seconds} s") from exc

    return type("Limited", (driver.Connection,), {"wait": wait})


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
