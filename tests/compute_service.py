"""A small Nova over real HTTP that takes events, for faults that the real one cannot be made to have."""

import http.server
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import fixtures
from oslo_config import cfg

from ingot.common.conf import opts
from tests import http_handler

_PATH = "/os-server-external-events"


class ComputeService(fixtures.Fixture):
    """
    :ivar url: as an endpoint of a catalog.
    :ivar taken: (server, tag) of each event that was taken, in their order.
    :ivar requests: headers and sent object of each request.
    :ivar refusals: statuses with which the next requests are answered.
    :ivar codes: that of events of a server, by its uuid.
    :ivar broken: servers whose requests are answered 500, with all events in them.
    :ivar pause: seconds that each answer takes.
    :ivar body: what is answered in place of the events.
    """

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[tuple[str, str]] = []
        self.requests: list[tuple[dict[str, str], Any]] = []
        self.refusals: list[int] = []
        self.codes: dict[str, int] = {}
        self.broken: set[str] = set()
        self.pause = 0.0
        self.body: Any = None

    def _setUp(self) -> None:
        handler = type("Handler", (_Handler,), {"service": self})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        self.url = f"http://127.0.0.1:{server.server_address[1]}/v2.1"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

    def configure(self, conf: cfg.ConfigOpts) -> None:
        """Point Ingot at this service."""
        opts.use_service(conf, "nova")
        conf.set_override("auth_type", "none", group="nova")
        conf.set_override("endpoint_override", self.url, group="nova")

    def answer_events(self, events: list[dict[str, Any]]) -> tuple[int, Any]:
        """Return status and answer for events, as Nova does."""
        answers = []
        for event in events:
            code = self.codes.get(event["server_uuid"], 200)
            if code == 200:
                self.taken.append((event["server_uuid"], event["tag"]))
            answers.append({**event, "code": code, "status": "completed" if code == 200 else "failed"})
        return (200 if all(one["code"] == 200 for one in answers) else 207), {"events": answers}


class _Handler(http_handler.Handler):
    service: ComputeService

    def do_POST(self) -> None:
        sent = self.body()
        service = self.service
        service.requests.append((dict(self.headers), sent))
        time.sleep(service.pause)
        if service.refusals:
            self.answer(service.refusals.pop(0), {})
        elif not service.broken.isdisjoint(event["server_uuid"] for event in sent["events"]):
            self.answer(500, {})
        elif urlsplit(self.path).path != f"/v2.1{_PATH}":
            self.answer(404, {})
        elif service.body is not None:
            self.answer(200, service.body)
        else:
            self.answer(*service.answer_events(sent["events"]))
