"""A server that refuses Ingot is another thing than one that is away."""

from ingot.common import errors
from ingot.db import schema
from ingot.db.engine import Database
from tests import database


class RefusalsOnMySQL(database.TestCase):
    backend = "mysql"

    def refused(self, **parts: str) -> errors.IngotError:
        url = self.db.url.set(**parts).render_as_string(hide_password=False)
        conf = database.configuration(url)
        return self.assertRaises(errors.AccessRefused, schema.version, Database(conf))

    def test_a_wrong_password_or_database_is_refused_for_good(self) -> None:
        for parts in ({"username": "stranger", "password": "hunter2"}, {"database": "no_such_database"}):
            refusal = self.refused(**parts)
            self.assertNotIn("Try again in a few seconds", refusal.message)
            self.assertNotIn("stranger", refusal.message)


class RefusalsOnMySQLByMysqlclient(RefusalsOnMySQL):
    backend = "mysqlclient"


class RefusalsOnPostgreSQL(RefusalsOnMySQL):
    backend = "postgresql"
