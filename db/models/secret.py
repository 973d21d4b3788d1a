"""The check of the key that secrets are encrypted with."""

import datetime

from sqlalchemy.orm import Mapped, mapped_column

from ingot.common import clock
from ingot.db.models.base import Base, text


class SecretKey(Base):
    """The only row, once anything was encrypted: a text that is known, encrypted as secrets are.

    A service that cannot decrypt it has the wrong keys.
    """

    __tablename__ = "secret_keys"

    id: Mapped[int] = mapped_column(primary_key=True)
    sealed: Mapped[str] = mapped_column(text())
    hostname: Mapped[str] = mapped_column(doc="of the service that was the first to encrypt")
    created_at: Mapped[datetime.datetime] = mapped_column(default=clock.now)
