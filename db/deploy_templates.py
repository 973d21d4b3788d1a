"""Queries on deploy templates and their steps."""

from ingot.db import listing, models
from ingot.db.step_lists import StepLists

TEMPLATES = StepLists(
    listing.Source("Deploy template", models.table(models.DeployTemplate)),
    models.table(models.DeployTemplateStep),
    owner="deploy_template_id",
)
