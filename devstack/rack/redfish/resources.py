"""All routes of the Redfish faces."""

from ingot.rack.redfish import (
    bios,
    chassis,
    dell,
    drives,
    events,
    managers,
    root,
    secure_boot,
    sessions,
    storage,
    systems,
    tasks,
    update,
)

ROUTES = (
    *root.ROUTES,
    *sessions.ROUTES,
    *tasks.ROUTES,
    *events.ROUTES,
    *systems.ROUTES,
    *bios.ROUTES,
    *secure_boot.ROUTES,
    *storage.ROUTES,
    *chassis.ROUTES,
    *update.ROUTES,
    *dell.ROUTES,
    *drives.ROUTES,
    *managers.ROUTES,
)
