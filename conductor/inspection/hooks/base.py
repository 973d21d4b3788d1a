"""What every inspection hook is."""

from typing import ClassVar

from oslo_config import cfg

from ingot.conductor.inspection.draft import Draft


class InspectionHook:
    """Makes something of an inventory; one object serves all inspections of a conductor, in several threads.

    To add one, subclass this, register it as an entry point ``ingot.inspection.hooks`` and name it in
    ``[inspector] hooks``. Whatever a machine sends may be in the inventory, of any type and size.

    :cvar dependencies: names of hooks that must be named before this one.
    :raises ConfigurationError: an option that the hook reads cannot be used.
    """

    dependencies: ClassVar[tuple[str, ...]] = ()

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.conf = conf

    def run(self, draft: Draft) -> None:
        """Change the draft, of which nothing is written before all hooks and rules have run.

        :raises StepFailed: the machine is not to be accepted; the inspection fails.
        """
        raise NotImplementedError
