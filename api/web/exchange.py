"""A request on its way through the application, and what each station of it finds out."""

import re
import time
from collections.abc import Mapping
from typing import Any

from oslo_context import context as oslo_context
from werkzeug import wrappers

from ingot.api.auth import identity, sessions
from ingot.api.web import proxies
from ingot.api.web.audit_trail import Done, Subject
from ingot.common import context

Environ = dict[str, Any]

_GLOBAL_REQUEST_ID = re.compile(r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Exchange:
    """A request, and what is known of it so far.

    :ivar method: HEAD is GET, whose answer then loses its body.
    :ivar endpoint: the path of its route, in which brackets stand for parts of the URL; empty: there is no such route.
    :ivar named: those parts of the URL.
    :ivar ids: what all that is logged for it carries, a refusal of its user too.
    :ivar minor: the version that it speaks; None until that is known.
    :ivar allow: the methods of the URL, for the refusal of another one.
    :ivar rule: the rule of policy for it, if it is a user's and may change something.
    :ivar subject: what it is about, if it is recorded.
    :ivar refusal: the message that it is refused with.
    :ivar session: that its cookie has, if the cookie counts.
    :ivar is_secret: whether the answer is for a machine and stays in no cache.
    """

    def __init__(self, request: wrappers.Request) -> None:
        self.began = time.monotonic()
        self.request = request
        self.environ: Environ = request.environ
        self.path = request.path
        self.method = "GET" if request.method == "HEAD" else request.method
        self.endpoint = ""
        self.named: Mapping[str, str] = {}
        given = self.environ.get("HTTP_X_OPENSTACK_REQUEST_ID", "")
        self.ids: identity.RequestIds = {
            "request_id": oslo_context.generate_request_id(),
            "global_request_id": given if _GLOBAL_REQUEST_ID.fullmatch(given) else None,
            "overwrite": False,
        }
        self.ctx = context.RequestContext(**self.ids)
        self.ctx.update_store()
        self.minor: int | None = None
        self.allow: str | None = None
        self.session: sessions.Session | None = None
        self.is_secret = False
        self.rule = ""
        self.subject: Subject | None = None
        self.refusal: str | None = None

    def sum_up(self, status: int, subject: Subject) -> Done:
        """Return what the audit trail says of it."""
        given = next((self.named[part] for part in ("node", "ident", "hostname") if part in self.named), None)
        return Done(self.ctx, self.method, self.path, self.rule, given, status, self.refusal, self.address, subject)

    @property
    def address(self) -> str:
        """The address of the client itself; unknown where it may be that of a proxy before many."""
        hidden = proxies.HIDDEN in self.environ
        return proxies.UNKNOWN if hidden else self.environ.get("REMOTE_ADDR", proxies.UNKNOWN)
