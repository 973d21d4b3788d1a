"""The root of a service, and the registries of its messages and attributes."""

import uuid

from ingot.rack.redfish import attributes, messages
from ingot.rack.redfish.routing import ROOT, Call, Document, Route, collection, link, resource

REGISTRIES = f"{ROOT}/Registries"
_FILES = {
    f"Base.{messages.VERSION}": ("Base.1.18.1", messages.registry),
    attributes.REGISTRY: ("BiosAttributeRegistry.1.0.0", attributes.registry),
}
_NAMESPACE = uuid.UUID("0b5d2c0a-1f0e-4c3f-9d65-7d1f3a0c2b90")


def _versions(call: Call) -> Document:
    return {"v1": f"{ROOT}/"}


def _root(call: Call) -> Document:
    first = call.service.members[0]
    vendor = first.vendor
    name = str(first.board.machine.uuid) if call.service.alone else "rack"
    oem = {"Vendor": vendor.oem, "Oem": {vendor.oem: {}}} if vendor.oem and call.service.alone else {}
    parts = ("Systems", "Managers", "Chassis", "SessionService", "UpdateService", "EventService", "Registries")
    return {
        "@odata.id": f"{ROOT}/",
        "@odata.type": "#ServiceRoot.v1_17_0.ServiceRoot",
        "Id": "RootService",
        "Name": "Root Service",
        "RedfishVersion": "1.18.1",
        "UUID": str(uuid.uuid5(_NAMESPACE, name)),
        "Product": vendor.model,
        "ProtocolFeaturesSupported": {
            "ExpandQuery": {"NoLinks": True, "Levels": True, "MaxLevels": 1, "ExpandAll": False, "Links": False}
        },
        **{part: link(f"{ROOT}/{part}") for part in parts},
        "Tasks": link(f"{ROOT}/TaskService"),
        "Links": {"Sessions": link(f"{ROOT}/SessionService/Sessions")},
        **oem,
    }


def _odata(call: Call) -> Document:
    names = [name for name, value in _root(call).items() if isinstance(value, dict) and "@odata.id" in value]
    return {
        "@odata.context": f"{ROOT}/$metadata",
        "value": [{"name": name, "kind": "Singleton", "url": _root(call)[name]["@odata.id"]} for name in names],
    }


def _registries(call: Call) -> Document:
    return collection(REGISTRIES, "MessageRegistryFile", [f"{REGISTRIES}/{name}" for name in _FILES])


def _registry_file(call: Call) -> Document:
    name = call.ids["registry"]
    if name not in _FILES:
        raise call.missing()
    return resource(
        f"{REGISTRIES}/{name}",
        "MessageRegistryFile.v1_1_3.MessageRegistryFile",
        name,
        Languages=["en"],
        Registry=_FILES[name][0],
        Location=[{"Language": "en", "Uri": f"{REGISTRIES}/{name}/en"}],
    )


def _registry(call: Call) -> Document:
    if call.ids["registry"] not in _FILES:
        raise call.missing()
    return {"@odata.id": call.path, **_FILES[call.ids["registry"]][1]()}


ROUTES = (
    Route("GET", "", _root),
    Route("GET", "/odata", _odata),
    Route("GET", "/redfish", _versions, root=""),
    Route("GET", "/Registries", _registries),
    Route("GET", "/Registries/{registry}", _registry_file),
    Route("GET", "/Registries/{registry}/en", _registry),
)
