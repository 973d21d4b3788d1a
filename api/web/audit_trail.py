"""The audit trail: who has changed what, for each request that changes something or was refused to.

An event is written twice. The line in the log (``ingot.audit``) is written before the answer leaves. The row of the
table comes from a thread that writes many in one statement, within a second: no request waits for it, or has a
statement more. An orderly stop writes what waits. A process that is killed, or a database that stays away, may cost
rows, which are in the log nevertheless.
"""

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

import orjson
from oslo_config import cfg
from oslo_log import log
from oslo_utils import uuidutils

from ingot.common import clock, context, errors, masking, metrics
from ingot.common.json_types import Json
from ingot.db import audit, models
from ingot.db.engine import Database

LOG = log.getLogger(__name__)
AUDIT = logging.getLogger("ingot.audit")

_BATCH = 500
_MOST_WAITING = 20_000
_PAUSE_S = 0.5  # in which events gather to one statement
_RETRY_S = 5.0
_RETRY_AT_END_S = 0.2
_STOP_S = 5.0
_MINUTE_S = 60.0
_MOST_FIELDS = 30
_LONGEST = {
    column.name: length
    for column in models.table(models.AuditEvent).columns
    if (length := getattr(column.type, "length", None))
}
"""Characters that the columns of the table may have."""

_VERBS = ("action", "target", "runbook", "dry_run")
"""Fields of bodies whose values say what is requested; of all others the names alone are kept."""


class Subject:
    """What a request is about, as far as its handler has found out.

    :ivar counts: whether the request is recorded.
    :ivar given: of a part, or where the URL names none, what the request has for the object.
    :ivar reason: of a part, the message of its refusal.
    :ivar parts: of a request about several objects, each one's action, subject and status.
    """

    def __init__(self, given: str | None = None) -> None:
        self.counts = True
        self.given = given
        self.reason: str | None = None
        self.known: dict[str, object] = {}
        self.detail: Json = {}
        self.parts: list[tuple[str, Subject, int]] = []

    def note(self, record: Any, anew: bool = False) -> None:
        """Note the object; the first one counts.

        :param record: a row; of a node, or of what belongs to one, with the projects that own the node or lease it.
        :param anew: whether it counts instead of an earlier one: it was created.
        """
        columns = vars(record)
        if "uuid" in columns and (anew or not self.known):
            self.known = {
                "target_id": columns["uuid"],
                "target_name": columns.get("name"),
                "owner": columns.get("node_owner", columns.get("owner")),
                "lessee": columns.get("node_lessee", columns.get("lessee")),
            }

    def note_body(self, body: object) -> None:
        """Note which fields were sent, and the verb, but no other value: there are secrets among them."""
        if isinstance(body, list):
            self.detail = {"fields": [str(change.get("path"))[:100] for change in body[:_MOST_FIELDS]]}
        elif isinstance(body, Mapping):
            verbs = {name: str(body[name])[:100] for name in _VERBS if isinstance(body.get(name), str | bool)}
            self.detail = {**verbs, "fields": sorted(str(name)[:100] for name in body)[:_MOST_FIELDS]}


class Done(NamedTuple):
    """A request that has been answered.

    :param action: the rule of policy for it.
    :param given: what its URL has for the object.
    :param reason: the message of a refusal.
    """

    ctx: context.RequestContext
    method: str
    path: str
    action: str
    given: str | None
    status: int
    reason: str | None
    address: str
    subject: Subject


class _Quota:
    """How many refusals a minute are recorded, so that a flood fills nothing.

    Those of users have one of their own: who floods without a login hides nothing else.

    :param whose: requests, in words.
    """

    def __init__(self, whose: str, most: int) -> None:
        self._whose = whose
        self._most = most
        self._minute = 0.0
        self._refused = 0

    def take(self) -> bool:
        """Count a refusal; return whether it is one of the first of its minute."""
        if time.monotonic() - self._minute >= _MINUTE_S:
            self.report()
            self._minute, self._refused = time.monotonic(), 0
        self._refused += 1
        return self._refused <= self._most

    def report(self) -> None:
        """Log how many were not recorded."""
        if self._refused > self._most:
            LOG.warning("%d refused requests %s were not audited", self._refused - self._most, self._whose)


class Trail:
    """Records requests, if that is on.

    :ivar lost: how many events have no row, since too many waited or the process ended.
    """

    def __init__(self, conf: cfg.ConfigOpts, db: Database) -> None:
        options = conf.audit
        self.is_on = bool(options.enabled)
        self.lost = 0
        self._host: str = conf.host
        self._db = db
        self._records_refused = bool(options.record_refused)
        self._nobodys = _Quota("without a login", options.most_refused)
        self._users = _Quota("of users", options.most_refused)
        self._ignored = {name.strip().upper() for name in options.ignore_req_list.split(",")}
        self._waiting: queue.Queue[Json | None] = queue.Queue(_MOST_WAITING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        self._abandoned = threading.Event()
        self._at_work: list[Json] = []  # what the thread has taken and not written
        self._count_written, self._count_lost = map(metrics.AUDIT_EVENTS.labels, ("written", "lost"))

    def record(self, done: Done) -> None:
        """Record a request that has been answered."""
        if done.method in self._ignored or (_is_refusal(done.status) and not self._count_refusal(done.status)):
            return
        parts = [part for part in done.subject.parts if self._records_refused or not _is_refusal(part[2])]
        for action, subject, status in parts or [(done.action, done.subject, done.status)]:
            part = done._replace(action=action, subject=subject, status=status)
            event = _build(part._replace(given=subject.given or done.given, reason=subject.reason or done.reason))
            AUDIT.info("%s", orjson.dumps(render(event, self._host)).decode())
            self._add(event)

    def _count_refusal(self, status: int) -> bool:
        """Count a refusal; return whether it is to be recorded."""
        if not self._records_refused:
            return False
        with self._lock:
            return (self._nobodys if status == 401 else self._users).take()

    def _add(self, event: Json) -> None:
        if self._closed.is_set():
            self._lose(1, "this process ends")
            return
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
                self._thread.start()
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self._lose(1, "too many events wait for the database")

    def _lose(self, count: int, why: str) -> None:
        self.lost += count
        self._count_lost.inc(count)
        LOG.error("%d audit events are in the log only (%d in all): %s", count, self.lost, why)

    def close(self) -> None:
        """Write what waits, for some seconds at most."""
        self._closed.set()
        with self._lock:
            for quota in (self._nobodys, self._users):
                quota.report()
        if self._thread is not None:
            with contextlib.suppress(queue.Full):  # the thread sees that it is to end
                self._waiting.put_nowait(None)
            self._thread.join(_STOP_S)
            if self._thread.is_alive():
                self._abandoned.set()
                left = sum(event is not None for event in [*self._waiting.queue]) + len(self._at_work)
                self._lose(left, "the database did not take them before this process ended")

    def _run(self) -> None:
        context.admin().update_store()
        while not (self._closed.is_set() and (self._abandoned.is_set() or self._waiting.empty())):
            first = self._waiting.get()
            self._closed.wait(_PAUSE_S)
            others = [self._waiting.get() for _ in range(min(self._waiting.qsize(), _BATCH - 1))]
            self._at_work = [event for event in (first, *others) if event is not None]
            if self._at_work:
                self._write(self._at_work)
            self._at_work = []

    def _write(self, batch: list[Json]) -> None:
        """Write events, when the database is there. One that it refuses costs no other its row."""
        try:
            self._insert(batch)
        except Exception:  # the edge of a thread
            LOG.exception("Writing %d audit events failed unexpectedly", len(batch))
            refused = sum(not self._insert_alone(event) for event in batch) if len(batch) > 1 else 1
            if refused:
                self._lose(refused, "see the traceback before this")

    def _insert_alone(self, event: Json) -> bool:
        try:
            self._insert([event])
        except Exception:  # noqa: BLE001 - it was logged for all
            return False
        return True

    def _insert(self, batch: list[Json]) -> None:
        while not self._abandoned.is_set():
            try:
                audit.add(self._db, batch)
                self._count_written.inc(len(batch))
                return
            except errors.ServiceUnavailable:
                if self._closed.is_set():
                    self._abandoned.wait(_RETRY_AT_END_S)
                else:
                    self._closed.wait(_RETRY_S)


def _is_refusal(status: int) -> bool:
    """Return whether a request was wrong; one that the service failed to answer may have changed something."""
    return HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR


def _build(done: Done) -> Json:
    """Return the row of an event."""
    ctx, status = done.ctx, done.status
    event = {
        "uuid": uuidutils.generate_uuid(),
        "created_at": clock.now(),
        "action": done.action,
        "outcome": "failure" if status >= 400 else "pending" if status == 202 else "success",
        "status": status,
        "reason": done.reason and masking.mask_text(done.reason),
        "method": done.method,
        "path": masking.mask_text(done.path),
        "user_id": ctx.user_id,
        "user_name": ctx.user_name,
        "project_id": ctx.project_id,
        "project_name": ctx.project_name,
        "address": done.address or None,
        "target_type": done.action.split(":")[1] if ":" in done.action else "unknown",
        "target_id": done.given,
        "target_name": None,
        "owner": None,
        "lessee": None,
        **done.subject.known,
        "detail": done.subject.detail,
        "request_id": ctx.request_id,
        "global_request_id": ctx.global_request_id,
    }
    return {name: _clean(value)[: _LONGEST[name]] if isinstance(value, str) else value for name, value in event.items()}


def _clean(text: str) -> str:
    """Return a text with replacements for what databases refuse: NUL, and halves of surrogate pairs."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def render(event: Mapping[str, Any], observer: str | None = None) -> Json:
    """Return an event as it is shown and logged, with the names of CADF (DSP0262).

    :param event: columns.
    :param observer: the host that has recorded it, for the log.
    """
    shown = {
        "id": event["uuid"],
        "event_time": clock.iso(event["created_at"]),
        "action": event["action"],
        "outcome": event["outcome"],
        "reason": {"code": event["status"], "message": event["reason"]},
        "initiator": {
            "id": event["user_id"],
            "name": event["user_name"],
            "project_id": event["project_id"],
            "project_name": event["project_name"],
            "address": event["address"],
        },
        "target": {"type": event["target_type"], "id": event["target_id"], "name": event["target_name"]},
        "request": {"method": event["method"], "path": event["path"], **event["detail"]},
        **{name: event[name] for name in ("request_id", "global_request_id")},
    }
    return shown if observer is None else {**shown, "observer": observer}
