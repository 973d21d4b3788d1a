"""The actions of inspection rules: a table of functions of the draft and their arguments."""

import logging
from collections.abc import Callable, Mapping

import requests
from oslo_log import log
from requests import adapters

from ingot.common import errors, trait_names
from ingot.common.json_types import Json
from ingot.conductor.inspection import draft as drafts
from ingot.conductor.inspection.draft import NODE, PORT, Draft

LOG = log.getLogger(__name__)

Action = Callable[..., None]

_LEVELS = {name: getattr(logging, name.upper()) for name in ("debug", "info", "warning", "error")}
_LONGEST_TIMEOUT, _MOST_RETRIES, _LONGEST_BACKOFF = 30.0, 5, 1.0


def _fail(_draft: Draft, msg: str) -> None:
    raise errors.StepFailed(str(msg))


def _log(draft: Draft, msg: str, level: str = "info") -> None:
    if level not in _LEVELS:
        raise errors.Invalid(field="level", value=level, allowed=f"One of {', '.join(_LEVELS)}.")
    LOG.log(_LEVELS[level], "Node %s: %s", draft.node["uuid"], msg)


# The node


def _set_attribute(draft: Draft, path: str, value: object) -> None:
    place = drafts.parse_path(path, NODE)
    drafts.put(draft.node, place, value)
    drafts.check_type(draft.node, place[0], NODE)


def _extend_attribute(draft: Draft, path: str, value: object, unique: bool = False) -> None:
    place = drafts.parse_path(path, NODE)
    drafts.extend(draft.node, place, value, unique)
    drafts.check_type(draft.node, place[0], NODE)


def _del_attribute(draft: Draft, path: str) -> None:
    _delete(draft.node, drafts.parse_path(path, NODE), NODE)


def _delete(tree: Json, place: list[str], columns: dict[str, tuple[type, ...]]) -> None:
    """Remove what is in a column; a column itself becomes empty."""
    if len(place) > 1:
        drafts.remove(tree, place)
    else:
        tree[place[0]] = {} if dict in columns[place[0]] else None
        drafts.check_type(tree, place[0], columns)


def _set_capability(draft: Draft, name: str, value: object) -> None:
    drafts.set_capabilities(draft.node, {**drafts.capabilities(draft.node), name: str(value)})


def _unset_capability(draft: Draft, name: str) -> None:
    known = drafts.capabilities(draft.node)
    if known.pop(name, None) is not None:
        drafts.set_capabilities(draft.node, known)


def _add_trait(draft: Draft, name: str) -> None:
    if not trait_names.is_trait(name):
        raise errors.Invalid(field="name", value=name, allowed=f"A trait is {trait_names.FORM}.")
    draft.traits.add(name)


def _remove_trait(draft: Draft, name: str) -> None:
    draft.traits.discard(name)


# Plugin data


def _set_plugin_data(draft: Draft, path: str, value: object) -> None:
    drafts.put(draft.plugin_data, drafts.parts(path), value)


def _extend_plugin_data(draft: Draft, path: str, value: object, unique: bool = False) -> None:
    drafts.extend(draft.plugin_data, drafts.parts(path), value, unique)


def _unset_plugin_data(draft: Draft, path: str) -> None:
    drafts.remove(draft.plugin_data, drafts.parts(path))


# Ports


def _set_port_attribute(draft: Draft, port_id: str, path: str, value: object) -> None:
    port, place = draft.port(port_id), drafts.parse_path(path, PORT)
    drafts.put(port, place, value)
    drafts.check_type(port, place[0], PORT)


def _extend_port_attribute(draft: Draft, port_id: str, path: str, value: object, unique: bool = False) -> None:
    port, place = draft.port(port_id), drafts.parse_path(path, PORT)
    drafts.extend(port, place, value, unique)
    drafts.check_type(port, place[0], PORT)


def _del_port_attribute(draft: Draft, port_id: str, path: str) -> None:
    _delete(draft.port(port_id), drafts.parse_path(path, PORT), PORT)


# Others


def _api_call(
    _draft: Draft,
    url: str,
    headers: Mapping[str, str] | None = None,
    proxies: dict[str, str] | None = None,
    timeout: float = 5,
    retries: int = 3,
    backoff_factor: float = 0.3,
) -> None:
    """Send GET. All times have limits, whatever the server says: a worker of the conductor waits for the answer, of
    which only the status is read."""
    for name, value, most in (
        ("timeout", timeout, _LONGEST_TIMEOUT),
        ("retries", retries, _MOST_RETRIES),
        ("backoff_factor", backoff_factor, _LONGEST_BACKOFF),
    ):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise errors.Invalid(field=name, value=value, allowed=f"A number from 0 to {most}.")
    again = adapters.Retry(
        total=int(retries),
        backoff_factor=backoff_factor,
        status_forcelist=(500, 502, 503, 504),
        respect_retry_after_header=False,
    )
    with requests.Session() as session:
        session.trust_env = False  # passwords for other purposes stand there
        for scheme in ("http://", "https://"):
            session.mount(scheme, adapters.HTTPAdapter(max_retries=again))
        try:
            with session.get(
                url, headers=headers, proxies=proxies, timeout=timeout, stream=True, allow_redirects=False
            ) as answer:
                answer.raise_for_status()
                if answer.is_redirect:  # the headers may be for that server only
                    raise errors.StepFailed(f"GET {url}: it leads to {answer.headers['Location']}. Give that URL.")
        except (requests.RequestException, ValueError) as exc:
            raise errors.StepFailed(f"GET {url}: {exc}") from exc


ACTIONS: dict[str, Action] = {
    "fail": _fail,
    "log": _log,
    "set-attribute": _set_attribute,
    "extend-attribute": _extend_attribute,
    "del-attribute": _del_attribute,
    "set-capability": _set_capability,
    "unset-capability": _unset_capability,
    "add-trait": _add_trait,
    "remove-trait": _remove_trait,
    "set-plugin-data": _set_plugin_data,
    "extend-plugin-data": _extend_plugin_data,
    "unset-plugin-data": _unset_plugin_data,
    "set-port-attribute": _set_port_attribute,
    "extend-port-attribute": _extend_port_attribute,
    "del-port-attribute": _del_port_attribute,
    "api-call": _api_call,
}
