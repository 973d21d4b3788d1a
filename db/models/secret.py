"""The check of the key that secrets are encrypted with."""

import datetime

from ingot.common import clock
from ingot.db.models.base import Base, column, text


class SecretKey(Base):
    """The only row, once anything was encrypted: a text that is known, encrypted as secrets are.

    A service that cannot decrypt it has the wrong keys.
    """

    __tablename__ = "secret_keys"

    id: int = column(primary_key=True)
    sealed: str = column(text())
    hostname: str = column(doc="of the service that was the first to encrypt")
    created_at: datetime.datetime = column(default=clock.now)
