"""Named lists of steps: deploy templates and runbooks."""

from sqlalchemy import BigInteger, ForeignKey

from ingot.common.json_types import Json
from ingot.db.models.base import Base, Row, column


class DeployTemplate(Row):
    """A trait name and the steps that a deployment with this trait gets (specification 003)."""

    __tablename__ = "deploy_templates"

    name: str = column(unique=True)
    extra: Json


class DeployTemplateStep(Base):
    __tablename__ = "deploy_template_steps"

    id: int = column(primary_key=True)
    deploy_template_id: int = column(ForeignKey("deploy_templates.id", ondelete="CASCADE"), index=True)
    interface: str = column(index=True)
    step: str = column(index=True)
    args: Json
    priority: int = column(BigInteger())


class Runbook(Row):
    """Steps under a name, for manual cleaning and servicing of the nodes that share one of its traits."""

    __tablename__ = "runbooks"

    name: str = column(unique=True)
    description: str | None
    disable_ramdisk: bool = column(default=False)
    owner: str | None = column(index=True)
    public: bool = column(default=False)
    extra: Json


class RunbookStep(Base):
    __tablename__ = "runbook_steps"

    id: int = column(primary_key=True)
    runbook_id: int = column(ForeignKey("runbooks.id", ondelete="CASCADE"), index=True)
    interface: str
    step: str
    args: Json
    order: int = column(BigInteger())


class RunbookTrait(Base):
    __tablename__ = "runbook_traits"

    runbook_id: int = column(ForeignKey("runbooks.id", ondelete="CASCADE"), primary_key=True)
    trait: str = column(primary_key=True)
