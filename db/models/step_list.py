"""Named lists of steps: deploy templates and runbooks."""

from sqlalchemy import BigInteger, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from ingot.common.json_types import Json
from ingot.db.models.base import Base, Row


class DeployTemplate(Row):
    """A trait name and the steps that a deployment with this trait gets (specification 003)."""

    __tablename__ = "deploy_templates"

    name: Mapped[str] = mapped_column(unique=True)
    extra: Mapped[Json]


class DeployTemplateStep(Base):
    __tablename__ = "deploy_template_steps"

    id: Mapped[int] = mapped_column(primary_key=True)
    deploy_template_id: Mapped[int] = mapped_column(ForeignKey("deploy_templates.id", ondelete="CASCADE"), index=True)
    interface: Mapped[str] = mapped_column(index=True)
    step: Mapped[str] = mapped_column(index=True)
    args: Mapped[Json]
    priority: Mapped[int] = mapped_column(BigInteger())


class Runbook(Row):
    """Steps under a name, for manual cleaning and servicing of the nodes that share one of its traits."""

    __tablename__ = "runbooks"

    name: Mapped[str] = mapped_column(unique=True)
    description: Mapped[str | None]
    disable_ramdisk: Mapped[bool] = mapped_column(default=False)
    owner: Mapped[str | None] = mapped_column(index=True)
    public: Mapped[bool] = mapped_column(default=False)
    extra: Mapped[Json]


class RunbookStep(Base):
    __tablename__ = "runbook_steps"

    id: Mapped[int] = mapped_column(primary_key=True)
    runbook_id: Mapped[int] = mapped_column(ForeignKey("runbooks.id", ondelete="CASCADE"), index=True)
    interface: Mapped[str]
    step: Mapped[str]
    args: Mapped[Json]
    order: Mapped[int] = mapped_column(BigInteger())


class RunbookTrait(Base):
    __tablename__ = "runbook_traits"

    runbook_id: Mapped[int] = mapped_column(ForeignKey("runbooks.id", ondelete="CASCADE"), primary_key=True)
    trait: Mapped[str] = mapped_column(primary_key=True)
