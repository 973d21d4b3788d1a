"""Column types that behave the same on SQLite, MariaDB/MySQL and PostgreSQL (used by models and migrations)."""

from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

# MySQL's default collation ignores case; names, traits and uuids do not.
_MYSQL_BINARY = {"collation": "utf8mb4_bin"}


def string(length: int = 255) -> sa.types.TypeEngine[str]:
    """Text of limited length, compared case by case on every database."""
    return sa.String(length).with_variant(mysql.VARCHAR(length, **_MYSQL_BINARY), "mysql", "mariadb")


def text() -> sa.types.TypeEngine[str]:
    """Text without a limit that matters."""
    return sa.Text().with_variant(mysql.LONGTEXT(**_MYSQL_BINARY), "mysql", "mariadb")


def blob() -> sa.types.TypeEngine[bytes]:
    """Bytes without a limit that matters."""
    return sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")


def moment() -> sa.types.TypeEngine[Any]:
    """A point in time in UTC, with microseconds."""
    return sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")


_JSON_TYPES: tuple[tuple[type[sa.types.TypeEngine[Any]], dict[str, Any]], ...] = (
    (sa.Boolean, {"type": "boolean"}),
    (sa.Integer, {"type": "integer"}),
    (sa.Float, {"type": "number"}),
    (sa.DateTime, {"type": "string", "format": "date-time"}),
    (sa.String, {"type": "string"}),
)


def json_schema(column: sa.ColumnElement[Any]) -> dict[str, Any]:
    """The JSON schema of what a column holds, as the API shows it."""
    kind = column.type
    if isinstance(kind, Json):
        return {"type": {dict: "object", list: "array"}[kind.empty]} if kind.empty else {}
    found = next((schema for types, schema in _JSON_TYPES if isinstance(kind, types)), {})
    return found if found and not getattr(column, "nullable", True) else {**found, "type": [found["type"], "null"]}


class Number(sa.types.TypeDecorator[Any]):
    """A number that is usually whole and is read as such, but may have a fraction."""

    impl = sa.Double
    cache_ok = True

    def process_result_value(self, value: float | None, dialect: sa.Dialect) -> int | float | None:
        return int(value) if value is not None and value.is_integer() else value


class Json(sa.types.TypeDecorator[Any]):
    """A JSON document kept as text: no database looks into it, and text is the fastest to read and write.

    :param empty: makes the value that NULL stands for.
    """

    impl = sa.Text
    cache_ok = True

    def __init__(self, empty: type[dict[str, Any]] | type[list[Any]] | None = None) -> None:
        super().__init__()
        self.empty = empty

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        return text()

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> str | None:
        return None if value is None else orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> Any:
        if value is None:
            return self.empty() if self.empty else None
        return orjson.loads(value)
