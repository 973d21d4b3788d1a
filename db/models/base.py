"""What all tables have in common, and all rows read from them."""

import datetime
import inspect
import typing
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import orjson
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from ingot.common import clock, keyring
from ingot.common.json_types import Json

_EPOCH = datetime.datetime(1970, 1, 1)
_TICK = datetime.timedelta(microseconds=1)

_NAMES = {
    "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    "uq": "uniq_%(table_name)s_%(column_0_N_name)s",
    "fk": "%(table_name)s_%(column_0_name)s_fkey",
    "pk": "%(table_name)s_pkey",
}


AnyColumn = sa.ColumnElement[Any]
Reader = Callable[[Any], Any]
Result = sa.CursorResult[Any]

# MySQL's default collation ignores case; names, traits and uuids do not.
_MYSQL_BINARY = {"collation": "utf8mb4_bin"}


def string(length: int = 255) -> sa.types.TypeEngine[str]:
    """Return the type of text of limited length, compared case by case on every database."""
    return sa.String(length).with_variant(mysql.VARCHAR(length, **_MYSQL_BINARY), "mysql", "mariadb")


def text() -> sa.types.TypeEngine[str]:
    """Return the type of text without a limit that matters."""
    return sa.Text().with_variant(mysql.LONGTEXT(**_MYSQL_BINARY), "mysql", "mariadb")


def blob() -> sa.types.TypeEngine[bytes]:
    """Return the type of bytes without a limit that matters."""
    return sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")


def moment() -> sa.types.TypeEngine[datetime.datetime]:
    """Return the type of a point in time in UTC, with microseconds."""
    return sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")


_JSON_TYPES: tuple[tuple[type[object], Json], ...] = (
    (sa.Boolean, {"type": "boolean"}),
    (sa.Integer, {"type": "integer"}),
    (sa.Float, {"type": "number"}),
    (sa.DateTime, {"type": "string", "format": "date-time"}),
    (sa.String, {"type": "string"}),
)


def json_schema(column: AnyColumn) -> Json:
    """Return the JSON schema of what a column holds, as the API shows it."""
    declared = column.type
    if isinstance(declared, JsonText):
        return {"type": {dict: "object", list: "array"}[declared.empty]} if declared.empty else {}
    found = next((schema for types, schema in _JSON_TYPES if isinstance(declared, types)), {})
    return found if found and not getattr(column, "nullable", True) else {**found, "type": [found["type"], "null"]}


class Number(sa.types.TypeDecorator[float]):
    """A number that is usually whole and is read as such, but may have a fraction."""

    impl = sa.Double
    cache_ok = True

    def process_result_value(self, value: float | None, dialect: sa.Dialect) -> int | float | None:
        return int(value) if value is not None and value.is_integer() else value


class JsonText(sa.types.TypeDecorator[object]):
    """A JSON document kept as text: no database looks into it, and text is the fastest to read and write.

    :param empty: makes the value that NULL stands for.
    """

    impl = sa.Text
    cache_ok = True

    def __init__(self, empty: type[dict[str, object]] | type[list[object]] | None = None) -> None:
        super().__init__()
        self.empty = empty

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[str]:
        return text()

    def process_bind_param(self, value: object, dialect: sa.Dialect) -> str | None:
        return None if value is None else orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()

    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Reader:
        """Return what reads a value, in one call: process_result_value would be called by another function."""
        empty: Callable[[], object] = self.empty or (lambda: None)

        def read(value: str | None) -> object:
            if value == "{}":  # most of them
                return {}
            return empty() if value is None else orjson.loads(value)

        return read


class KeptJson(JsonText):
    """A JSON document that goes into an answer as the text that is kept: nothing is decoded and encoded again."""

    cache_ok = True

    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Reader:
        empty: Callable[[], object] = self.empty or (lambda: None)
        return lambda value: empty() if value is None else orjson.Fragment(value)


class Words(sa.types.TypeDecorator[list[str]]):
    """Words of one value, joined by commas, which are read as a sorted list."""

    impl = sa.Text
    cache_ok = True

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> list[str]:
        return sorted(value.split(",")) if value else []


keyrings: weakref.WeakKeyDictionary[sa.Dialect, keyring.Keyring] = weakref.WeakKeyDictionary()
"""By the dialect of an engine, what it encrypts secrets with."""


class SecretJson(JsonText):
    """A JSON object whose secrets are encrypted in the database.

    What is read holds them as :class:`ingot.common.keyring.Sealed`, which costs next to nothing. Only the attribute of
    a record decrypts them (:class:`_Opened`); ``vars`` of the record has them as they were read.
    """

    cache_ok = True

    def __init__(self) -> None:
        super().__init__(dict)

    def process_bind_param(self, value: object, dialect: sa.Dialect) -> str | None:
        return super().process_bind_param(keyrings[dialect].seal(value) if value else value, dialect)

    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Reader:
        read, wrap = super().result_processor(dialect, coltype), keyrings[dialect].wrap
        return lambda value: wrap(read(value)) if value and keyring.MARK in value else read(value)


class _Opened:
    """The attribute of a record for a column of secrets: has them decrypted, each time that it is read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, record: "Record", _model: type) -> object:
        try:
            return keyring.open_all(vars(record)[self._name])
        except KeyError:
            raise AttributeError(self._name) from None  # whose message is that of Record

    def __set__(self, record: "Record", value: object) -> None:
        vars(record)[self._name] = value


class Record:
    """A row of a table at the moment it was read. Changing an attribute changes nothing in the database."""

    def __init__(self, **columns: object) -> None:
        self.__dict__.update(columns)

    @classmethod
    def from_row(cls, names: Sequence[str], row: Sequence[object]) -> Self:
        """Return the record of a row of a result; quicker than the constructor, which lists of nodes feel."""
        record = cls.__new__(cls)
        record.__dict__ = dict(zip(names, row, strict=True))
        return record

    @classmethod
    def first_of(cls, result: Result) -> Self | None:
        """Return the first row of a result, if there is one."""
        row = result.first()
        return None if row is None else cls.from_row(tuple(result.keys()), row)

    @classmethod
    def all_of(cls, result: Result) -> list[Self]:
        """Return all rows of a result."""
        names = tuple(result.keys())
        return [cls.from_row(names, row) for row in result.all()]

    if not TYPE_CHECKING:  # type checkers know the columns

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f"{name} was not read")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def as_dict(self) -> dict[str, object]:
        return dict(self.__dict__)

    @property
    def version(self) -> str:
        """The name of this state of the row among all that a row of its uuid ever had, earlier rows included.

        Needs created_at, and revision (nodes) or updated_at.
        """
        known = self.__dict__
        revision = known.get("revision")
        if revision is None:
            return _moment(known["updated_at"] or known["created_at"])
        return f"{revision}.{_moment(known['created_at'])}"

    def __repr__(self) -> str:
        return f"<{self.__dict__.get('uuid', self.__dict__.get('id'))}>"  # rows hold secrets


def _moment(moment: datetime.datetime) -> str:
    return f"{(moment - _EPOCH) // _TICK:x}"


_TYPES: dict[object, type[sa.types.TypeEngine[Any]] | sa.types.TypeEngine[Any]] = {
    bool: sa.Boolean,
    int: sa.Integer,
    float: sa.Double,
    str: string(),
    datetime.datetime: moment(),
    Json: JsonText(dict),
    list[Json]: JsonText(list),
    list[str]: JsonText(list),
}
"""What holds a value of a type, where a column does not say."""


class _Declared(NamedTuple):
    """What a model says of a column besides the type of its values."""

    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = {}

    def build(self, name: str, hint: Any) -> sa.Column[Any]:
        optional = type(None) in typing.get_args(hint)
        kind = next(one for one in typing.get_args(hint) if one is not type(None)) if optional else hint
        options = {"nullable": optional, **self.options}
        typed = any(isinstance(one, sa.types.TypeEngine) for one in self.arguments)
        found: sa.Column[Any] = sa.Column(*(() if typed else (_TYPES[kind],)), *self.arguments, **options)
        found.name = found.key = name  # as it is: of a name that is given Column makes what is no key of JSON
        return found


def column(*arguments: object, **options: object) -> Any:
    """Declare more of a column of a model than its annotation has; parameters as of :class:`sqlalchemy.Column`."""
    return _Declared(arguments, options)


class Base(Record):
    """A table's declaration, and a row read from it: the annotations of a model are the columns of its table.

    A subclass without a table of its own adds what a query reads besides: annotate the further columns.
    """

    metadata: ClassVar = sa.MetaData(naming_convention=_NAMES)
    __tablename__: ClassVar[str]
    __table_args__: ClassVar[tuple[sa.schema.SchemaItem, ...]] = ()
    _declared: ClassVar[Mapping[str, tuple[Any, _Declared]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = {}
        for name, hint in inspect.get_annotations(cls).items():
            said = vars(cls).get(name)
            own[name] = hint, said if isinstance(said, _Declared) else _Declared()
            if said is not None:
                delattr(cls, name)  # or a column that was not read would look as if it was
        inherited: dict[str, tuple[Any, _Declared]] = {}
        for base in cls.__bases__:
            inherited |= getattr(base, "_declared", {})
        cls._declared = {**inherited, **own}
        if "__tablename__" in vars(cls):
            columns = [declared.build(name, hint) for name, (hint, declared) in cls._declared.items()]
            for column in sa.Table(cls.__tablename__, Base.metadata, *columns, *cls.__table_args__).c:
                if isinstance(column.type, SecretJson):
                    setattr(cls, column.name, _Opened(column.name))


class Timestamps(Base):
    """When a row was written first and last."""

    created_at: datetime.datetime = column(default=clock.now)
    updated_at: datetime.datetime | None = column(onupdate=clock.now)


class Row(Timestamps):
    """What is created, changed and deleted by requests: a row with a uuid."""

    id: int = column(primary_key=True)
    uuid: str = column(string(36), unique=True)


def table(model: type[Base]) -> sa.Table:
    """Return the table that a model declares."""
    return Base.metadata.tables[model.__tablename__]


def as_kept(column: AnyColumn) -> AnyColumn:
    """Return a column as :class:`KeptJson` reads it, if it holds JSON in which nothing is encrypted."""
    found = column.type
    return sa.type_coerce(column, KeptJson(found.empty)) if type(found) is JsonText else column


def columns(table: sa.Table, names: Iterable[str] | None) -> list[AnyColumn]:
    """Return the named columns of a table, or all."""
    return list(table.c) if names is None else [table.c[name] for name in names]
