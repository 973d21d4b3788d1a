"""All routes of the Redfish faces."""

from ingot.rack.redfish import drives, events, managers, root, sessions, systems, tasks

ROUTES = (
    *root.ROUTES,
    *sessions.ROUTES,
    *tasks.ROUTES,
    *events.ROUTES,
    *systems.ROUTES,
    *drives.ROUTES,
    *managers.ROUTES,
)
