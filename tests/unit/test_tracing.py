"""A request, its RPC, its flow, the steps and the calls to BMCs are one trace, which a collector gets by OTLP."""

import gzip
import http.server
import threading
import time
from typing import Any

import fixtures
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from ingot.common import context, errors, states, tracing
from ingot.db import nodes
from ingot.rack import ports
from ingot.rpcapi import client, transport
from tests import api_case, conductor_case, database

_PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Collector(fixtures.Fixture):
    """Takes spans as a collector does: OTLP over HTTP, in protobuf."""

    def _setUp(self) -> None:
        self.spans: list[trace_pb2.Span] = []
        self.services: set[str] = set()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.take(trace_service_pb2.ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_arguments: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/traces"

    def take(self, request: trace_service_pb2.ExportTraceServiceRequest) -> None:
        for of_resource in request.resource_spans:
            about = {one.key: one.value.string_value for one in of_resource.resource.attributes}
            self.services.add(about["service.name"])
            self.spans += [span for scope in of_resource.scope_spans for span in scope.spans]


def stop() -> None:
    """Send what waits, and trace nothing more."""
    if tracing.THIS.provider is not None:
        tracing.THIS.provider.shutdown()
        tracing.THIS.provider = tracing.THIS.tracer = None


class TracedTest(api_case.ApiCase):
    """The API and a conductor with fake hardware, in this process."""

    def configure(self) -> None:
        conductor_case.fake_hardware(self.conf)
        self.conf.set_override("host", api_case.HOST)
        self.collector = self.useFixture(Collector())
        self.conf.set_override("enabled", True, group="tracing")
        self.conf.set_override("endpoint", self.collector.url, group="tracing")
        self.addCleanup(stop)

    def wait_for_end(self, node: str) -> None:
        """Wait until a deployment is done."""
        conductor_case.eventually(lambda: nodes.get(self.db, node).provision_state == states.ACTIVE, "it is active")

    def read_spans(self) -> dict[str, trace_pb2.Span]:
        """Return all spans by name, once they have been sent."""
        stop()
        return {span.name: span for span in self.collector.spans}

    def test_a_flow_belongs_to_the_request(self) -> None:
        conductor = conductor_case.manager.Conductor(self.conf, self.db)
        bus = transport.LocalTransport()
        bus.serve(self.conf.host, conductor.endpoint)
        conductor.start()
        self.addCleanup(conductor.stop)
        app = api_case.create_app(self.conf, self.db, client.ConductorClient(self.conf, self.db, bus))
        node = database.make_node(self.db, provision_state=states.AVAILABLE, name="n")
        headers = {"X-OpenStack-Ironic-API-Version": "1.115", "traceparent": _PARENT}
        body = {"target": "active"}
        answer = app.test_client().put("/v1/nodes/n/states/provision", json=body, headers=headers)
        self.assertEqual(202, answer.status_code, answer.text)
        self.wait_for_end(node.uuid)
        spans = self.read_spans()
        request = spans["PUT /v1/nodes/<node>/states/provision"]
        self.assertEqual("b7ad6b7169203331", request.parent_span_id.hex())
        call = spans["call validate_deploy"]
        self.assertEqual(request.span_id, call.parent_span_id)
        self.assertEqual(call.span_id, spans["serve validate_deploy"].parent_span_id)
        self.assertEqual(request.span_id, spans["reconcile"].parent_span_id)
        step = spans["step deploy.deploy"]
        self.assertIn(step.parent_span_id, {span.span_id for span in self.collector.spans if span.name == "reconcile"})
        about = {one.key: one.value.string_value for one in step.attributes}
        self.assertEqual((node.uuid, "deploy"), (about["node.uuid"], about["ingot.flow"]))
        self.assertEqual({"0af7651916cd43dd8448eb211c80319c"}, {span.trace_id.hex() for span in self.collector.spans})
        self.assertEqual({"ingot-api"}, self.collector.services)  # which was the first in this process

    def test_what_fails_says_why_and_nothing_secret(self) -> None:
        self.refused(404, "GET", "/v1/nodes/none")
        with tracing.serve("a request", None):
            self.assertRaises(ValueError, self._fail)
        spans = self.read_spans()
        refused = spans["GET /v1/nodes/<node>"].status
        self.assertEqual(trace_pb2.Status.STATUS_CODE_ERROR, refused.code)
        self.assertIn("none", refused.message)
        self.assertEqual("ValueError", spans["inner"].status.message)
        self.assertNotIn("hunter2", str(self.collector.spans))

    def _fail(self) -> None:
        with tracing.span("inner"):
            raise ValueError("hunter2")

    def test_what_no_request_asks_for_is_not_traced(self) -> None:
        with tracing.span("a sweep"):
            self.assertIsNone(tracing.current())
        self.assertEqual({}, self.read_spans())

    def test_the_context_crosses_the_bus(self) -> None:
        ctx = context.RequestContext()
        self.assertNotIn("traceparent", ctx.to_dict())
        ctx.traceparent = _PARENT
        self.assertEqual(_PARENT, context.RequestContext.from_dict(ctx.to_dict()).traceparent)
        self.assertEqual(_PARENT, context.of_work({"traceparent": _PARENT}).traceparent)


class AwayTest(database.TestCase):
    def test_the_end_of_a_process_does_not_wait_for_a_collector_that_is_away(self) -> None:
        self.useFixture(fixtures.FakeLogger())
        self.useFixture(fixtures.MonkeyPatch("ingot.common.tracing._FLUSH_S", 0.5))
        conf = database.configuration("sqlite://")
        conf.set_override("enabled", True, group="tracing")
        conf.set_override("endpoint", f"http://127.0.0.1:{ports.tcp()}/v1/traces", group="tracing")
        self.useFixture(fixtures.MonkeyPatch("ingot.common.tracing.THIS", tracing._Tracing()))
        tracing.start(conf, "ingot-api")
        for _number in range(1200):
            with tracing.serve("a request", None):
                pass
        began = time.monotonic()
        tracing.flush()
        self.assertLess(time.monotonic() - began, 4)


class OffTest(api_case.ApiCase):
    def test_nothing_is_traced(self) -> None:
        self.node(name="n")
        with tracing.serve("a request", _PARENT), tracing.span("inner"):
            self.assertIsNone(tracing.current())

    def test_packages_that_are_missing(self) -> None:
        self.conf.set_override("enabled", True, group="tracing")
        self.useFixture(fixtures.MonkeyPatch("importlib.util.find_spec", lambda _name: None))
        refused = self.assertRaises(errors.ConfigurationError, tracing.start, self.conf, "ingot-api")
        self.assertIn("ingot[otel]", refused.message)
