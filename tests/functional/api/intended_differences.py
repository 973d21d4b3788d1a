"""Where Ingot answers another status than the reference implementation was measured to, and why.

Keys are (area, case), or (area, "METHOD path?query") for cases without a name. Each row is (status, reason).
"""

CRASH = "the reference crashes; the request is bad"
CRASH_SERVED = "the reference crashes; the request is good"
NO_SUCH_URL = "the URL does not exist; the reference takes the rest of it for a field"
LENIENT = "the field exists and can be shown; nothing is gained by refusing it"
COLUMN = "the column holds 255 characters on every database"
CONDUCTOR = "decided by the conductor, which only rehearses here"

DIFFERENCES: dict[tuple[str, str], tuple[int, str]] = {
    ("bad json", "truncated JSON"): (400, CRASH),
    ("bad json", "not JSON text"): (400, CRASH),
    ("bad json", "JSON null"): (400, CRASH),
    ("bad json", "NaN"): (400, "JSON has no NaN"),
    ("bad json", "nested 25 deep"): (201, CRASH_SERVED),
    ("url", "HEAD /v1/nodes"): (200, "HEAD is where GET is (RFC 9110)"),
    ("get one", "node?fields=traits,links"): (200, LENIENT),
    ("inspection_rule", "minimal"): (400, f"{CRASH}: a rule says when it applies, an empty list is always"),
    ("inspection_rule", "uuid bad"): (400, "no UUID; the reference does not find the rule by it"),
    ("inspection_rule", "DELETE all"): (204, CRASH_SERVED),
    ("get one", "children name at 1.82"): (404, CRASH),
    ("indicators", "one"): (200, "the reference crashes at the documented URL"),
    ("indicators", "chassis one"): (200, "the reference crashes at the documented URL"),
    ("indicators", "missing"): (404, CRASH),
    ("indicators", "put"): (204, "the reference crashes at the documented URL"),
    ("indicators", "put bad"): (400, CRASH),
    ("indicators", "put missing"): (404, CRASH),
    ("vendor", "driver unknown"): (400, CRASH),
    ("json patch", "~1 in key"): (200, "documented since 1.98"),
    ("json patch", "~0 in key"): (200, "documented since 1.98"),
    ("json patch", "name null"): (200, "null means no name, as everywhere else"),
    ("json patch", "parent self"): (400, "a node that is its own child cannot run steps on its children"),
    ("length", "owner 256"): (400, COLUMN),
    ("length", "lessee 256"): (400, COLUMN),
    ("length", "shard 256"): (400, COLUMN),
    ("length", "port name 256"): (400, COLUMN),
    ("list drivers", "fields=default_boot_interface"): (200, LENIENT),
    ("list inspection_rules", "fields=uuid,bogus"): (400, "an unknown field is refused as everywhere else"),
    ("list nodes", "fields=uuid,bogus"): (400, CRASH),
    ("list nodes", "fields=links"): (200, CRASH_SERVED),
    ("list nodes", "fields=created_at,updated_at"): (200, LENIENT),
    ("list nodes", "fields=uuid&fields=created_at"): (200, LENIENT),
    ("list nodes", "fields=conductor"): (200, CRASH_SERVED),
    ("list nodes", "fields=allocation_uuid"): (200, CRASH_SERVED),
    ("list nodes", "fields=chassis_uuid"): (200, CRASH_SERVED),
    ("list nodes", "fields=ports"): (200, CRASH_SERVED),
    ("list nodes", "fields=states"): (200, CRASH_SERVED),
    ("list portgroups", "sort_key=node_uuid"): (400, CRASH),
    ("list ports", "sort_key=node_uuid"): (400, CRASH),
    ("list ports", "node=eb1&portgroup=ebpg"): (200, "both filters apply"),
    ("list ports", "shard=s1&node=eb1"): (200, "both filters apply"),
    ("locked", "PUT /v1/nodes/eb1/maintenance"): (202, "maintenance needs no lock"),
    ("locked", "DELETE /v1/nodes/eb1/maintenance"): (202, "maintenance needs no lock"),
    ("locked", "GET /v1/nodes/eb1/management/boot_device"): (200, "reading needs no lock"),
    ("locked", "PUT /v1/nodes/eb1/states/raid"): (400, "the body is wrong, locked or not"),
    ("provision", "{'target': 'rebuild', 'configdrive': 'x'}"): (400, CRASH),
    (
        "provision",
        "{'target': 'clean', 'clean_steps': [{'interface': 'deploy', 'step': 'x'}], 'disable_ramdisk': True} at 1.69",
    ): (406, "the reference was busy with the request before"),
    ("provision", "{'target': 'provide'} at 1.3"): (406, "the verb's version is looked at before the name's"),
    ("steps", "clean no interface"): (400, CRASH),
    ("steps", "service no interface"): (400, CRASH),
    ("steps", "clean limit_child bad"): (400, CRASH),
    ("steps", "service limit_child bad"): (400, CRASH),
    ("steps", "deploy_steps core deploy.deploy"): (202, CONDUCTOR),
    ("steps", "deploy_steps at 1.68"): (406, "the argument is newer than the request, empty or not"),
    ("steps", "deploy with instance_info traits ['CUSTOM_NONE']"): (202, CONDUCTOR),
    ("steps", "deploy with instance_info traits x"): (202, CONDUCTOR),
    ("shards", "query"): (400, CRASH),
    ("url", "GET /v1//nodes"): (404, CRASH),
    ("url", "GET /v1/nodes/err1/nope"): (404, NO_SUCH_URL),
    ("url", "GET /v1/nodes/err1/states/nope"): (404, CRASH),
    ("url", "POST /v1/nodes/err1"): (405, "no such method; the reference takes the name for the body"),
    ("url", "GET /v1/nodes/err1/states/power"): (405, CRASH),
    ("url", "GET /v1/nodes/err1/states/provision"): (405, CRASH),
    ("url", "GET /v1/nodes/a%2Fb"): (404, NO_SUCH_URL),
    ("url", "GET /v1/nodes/err1%0a"): (400, "no node can be called like that"),
    ("url", "GET /v1/volume/nope"): (404, CRASH),
}

CRASHES: dict[tuple[str, str], tuple[int, str]] = {
    ("inspection_rule", " empty args"): (400, CRASH),
    ("steps", "rebuild"): (202, CRASH_SERVED),
}
"""Where the reference answers 500, by area and a part of the case's name."""


def difference(area: str, case: str, url: str, measured: int) -> tuple[int, str] | None:
    """Return the status that Ingot should answer instead of the measured one, and why.

    None: it should answer as measured.
    """
    if (area, case or url) in DIFFERENCES:
        return DIFFERENCES[area, case or url]
    crashes = (
        description
        for (where, part), description in CRASHES.items()
        if where == area and part in case and measured == 500
    )
    return next(crashes, None)


def expected(area: str, case: str, url: str, measured: int) -> int:
    """Return the status that Ingot should answer."""
    found = difference(area, case, url, measured)
    return found[0] if found else measured
