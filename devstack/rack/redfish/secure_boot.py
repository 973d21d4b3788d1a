"""Secure boot of a system: whether the next boot checks signatures, and the databases of keys it checks them with."""

from ingot.rack.redfish.messages import RedfishError
from ingot.rack.redfish.routing import Call, Document, Route, collection, link, of_type, patch, resource

DATABASES = ("PK", "KEK", "db", "dbx")
_DEFAULTS, _DELETE_ALL, _DELETE_PK = "ResetAllKeysToDefault", "DeleteAllKeys", "DeletePK"


def _action(kind: str, path: str, values: tuple[str, ...]) -> Document:
    target = f"{path}/Actions/{kind}.ResetKeys"
    return {f"#{kind}.ResetKeys": {"target": target, "ResetKeysType@Redfish.AllowableValues": list(values)}}


def _show(call: Call) -> Document:
    state = call.board.state["secure_boot"]
    return resource(
        call.path,
        "SecureBoot.v1_1_2.SecureBoot",
        "UEFI Secure Boot",
        SecureBootEnable=state["enabled"],
        SecureBootCurrentBoot="Enabled" if state["current"] else "Disabled",
        SecureBootMode="UserMode" if "PK" in state["databases"] else "SetupMode",
        SecureBootDatabases=link(f"{call.path}/SecureBootDatabases"),
        Actions=_action("SecureBoot", call.path, (_DEFAULTS, _DELETE_ALL, _DELETE_PK)),
    )


def _enable(call: Call, body: Document, name: str) -> None:
    enabled = of_type(body, name, bool)
    _, _, efi = call.board.boot_override()
    if enabled and not efi:
        raise RedfishError("PropertyNotWritable", name, related=(f"#/{name}",))
    call.board.state["secure_boot"]["enabled"] = enabled
    call.board.save()


def _change(call: Call) -> None:
    patch(call, {"SecureBootEnable": _enable})


def _reset_kind(call: Call, allowed: tuple[str, ...]) -> str:
    kind = str(call.parameters("ResetKeys", ("ResetKeysType",))["ResetKeysType"])
    if kind not in allowed:
        raise RedfishError("ActionParameterValueNotInList", kind, "ResetKeysType", "ResetKeys")
    return kind


def _reset_keys(call: Call) -> None:
    kind = _reset_kind(call, (_DEFAULTS, _DELETE_ALL, _DELETE_PK))
    kept = {_DEFAULTS: list(DATABASES), _DELETE_ALL: [], _DELETE_PK: [n for n in DATABASES if n != "PK"]}
    call.board.state["secure_boot"]["databases"] = kept[kind]
    call.board.save()


def _databases(call: Call) -> Document:
    return collection(call.path, "SecureBootDatabase", [f"{call.path}/{name}" for name in DATABASES])


def _database(call: Call) -> Document:
    name = call.ids["database"]
    if name not in DATABASES:
        raise call.missing()
    return resource(
        call.path,
        "SecureBootDatabase.v1_0_3.SecureBootDatabase",
        f"Secure Boot database {name}",
        DatabaseId=name,
        Actions=_action("SecureBootDatabase", call.path, (_DEFAULTS, _DELETE_ALL)),
    )


def _reset_database(call: Call) -> None:
    kind, name = _reset_kind(call, (_DEFAULTS, _DELETE_ALL)), call.ids["database"]
    if name not in DATABASES:
        raise call.missing()
    databases = set(call.board.state["secure_boot"]["databases"]) - {name}
    call.board.state["secure_boot"]["databases"] = sorted(databases | ({name} if kind == _DEFAULTS else set()))
    call.board.save()


_HERE = "/Systems/{system}/SecureBoot"
ROUTES = (
    Route("GET", _HERE, _show),
    Route("PATCH", _HERE, _change),
    Route("POST", f"{_HERE}/Actions/SecureBoot.ResetKeys", _reset_keys),
    Route("GET", f"{_HERE}/SecureBootDatabases", _databases),
    Route("GET", f"{_HERE}/SecureBootDatabases/{{database}}", _database),
    Route("POST", f"{_HERE}/SecureBootDatabases/{{database}}/Actions/SecureBootDatabase.ResetKeys", _reset_database),
)
