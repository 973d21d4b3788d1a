"""Registries may be anyone's: what they say is checked, and secrets go to the registry that they are for."""

import base64
import json
import pathlib
from collections.abc import Callable
from typing import Any, ClassVar

import fixtures

from ingot.common import errors, masking
from ingot.drivers.images import fetches, instance_image, oci
from tests.unit.drivers import fakes
from tests.unit.drivers.file_server import SlowServer
from tests.unit.drivers.registry import IMAGE, OCI, Registry, digest

QCOW2 = b"QFI\xfb" + (3).to_bytes(4, "big") + bytes(16) + (1 << 20).to_bytes(8, "big") + bytes(70_000)


class RegistryCase(fakes.DriverTestCase):
    columns: ClassVar[dict[str, Any]] = {"deploy_interface": "direct", "properties": {"cpu_arch": "x86_64"}}

    def setUp(self) -> None:
        super().setUp()
        self.registry = self.make()

    def make(self, scheme: str = "") -> Registry:
        registry = Registry(scheme)
        self.addCleanup(registry.stop)
        return registry

    def of(self, source: str = "", **info: Any) -> fakes.MemoryTask:
        task = self.task(instance_info={"image_source": source or f"oci://{self.registry.host}/some/os", **info})
        task.conf.set_override("permit_fallback_to_http_transport", True, group="oci")
        return task

    def ready(self, task: fakes.MemoryTask) -> instance_image.ReadyImage:
        image: instance_image.ReadyImage = self.poll(lambda: instance_image.examine(task))
        return image

    def refused(self, task: fakes.MemoryTask) -> str:
        return self.assertRaises(errors.ImageError, self.ready, task).message


class FoundTest(RegistryCase):
    def test_what_the_agent_gets(self) -> None:
        self.registry.tags["v1"] = json.dumps(self.registry.manifest()).encode()
        task = self.of(f"oci://{self.registry.host}/some/os:v1")
        info = instance_image.build_image_info(task, self.ready(task))
        self.assertEqual([f"http://{self.registry.host}/v2/some/os/blobs/{digest(IMAGE)}"], info["urls"])
        self.assertEqual(
            ("sha256", digest(IMAGE)[7:], "raw"), (info["os_hash_algo"], info["os_hash_value"], info["disk_format"])
        )
        self.assertNotIn("image_request_authorization", info)

    def test_the_best_for_the_machine_is_chosen(self) -> None:
        plain = self.registry.manifest
        self.registry.index(
            {"of": plain(b"other"), "platform": {"architecture": "arm64"}, "annotations": {"disktype": "raw"}},
            {"of": plain(QCOW2), "platform": {"architecture": "amd64"}, "annotations": {"disktype": "qemu"}},
            {
                "of": plain(media="application/zstd"),
                "platform": {"architecture": "amd64"},
                "annotations": {"disktype": "raw"},
            },
            {"of": plain(), "platform": {"architecture": "amd64"}, "annotations": {"disktype": "applehv"}},
            {"of": plain(b"windows"), "annotations": {"disktype": "wsl"}},
        )
        self.assertEqual(digest(IMAGE)[7:], self.ready(self.of()).checksum)
        requested = self.ready(self.of(image_disk_format="qcow2"))
        self.assertEqual(("qcow2", digest(QCOW2)[7:]), (requested.disk_format, requested.checksum))
        task = self.of()
        task.node.properties = {"cpu_arch": "ppc64le"}
        message = self.refused(task)
        for part in ("no disk image for this machine", "one is for arm64", "one is for amd64", "of disktype wsl"):
            self.assertIn(part, message)

    def test_by_digest(self) -> None:
        ident = self.registry.add(json.dumps(self.registry.manifest()).encode())
        task = self.of(f"oci://{self.registry.host}/some/os:v1@{ident}")
        self.assertEqual(digest(IMAGE)[7:], self.ready(task).checksum)
        self.registry.blobs[ident] = json.dumps(self.registry.manifest(b"something else")).encode()
        self.assertIn(f"has not the digest {ident}", self.refused(task))

    def test_a_checksum_that_is_given_must_be_the_digest(self) -> None:
        self.registry.tags["latest"] = json.dumps(self.registry.manifest()).encode()
        self.assertEqual(digest(IMAGE)[7:], self.ready(self.of(image_checksum=digest(IMAGE)[7:])).checksum)
        self.assertIn("the checksum of instance_info is another one", self.refused(self.of(image_checksum="ab" * 32)))
        image = self.ready(self.of(image_checksum="cd" * 64))
        self.assertEqual(("sha512", "cd" * 64), (image.algorithm, image.checksum), "the agent compares it")

    def test_what_is_wrong_in_an_address_is_a_400(self) -> None:
        for source in ("oci://", "oci://host", "oci://u:p@host/a", "oci://host/A", "oci://host/a/../b", "oci://host/a:b:c",
                       "oci://host/a@sha256:12", "oci://[::g]/a", "oci://host/a?x"):  # fmt: skip
            error = self.assertRaises(errors.Invalid, instance_image.read_requested_image, self.of(source))
            self.assertIn("oci://host/name:tag", error.message)
        task = self.of("oci://169.254.169.254/a")
        task.conf.clear_override("url_denied_networks", group="deploy")
        self.assertIn(
            "url_denied", self.assertRaises(errors.Invalid, instance_image.read_requested_image, task).message
        )
        task = self.of(image_checksum="http://host/SUMS")
        self.assertIn(
            "leave it out", self.assertRaises(errors.Invalid, instance_image.read_requested_image, task).message
        )
        task = self.of(image_pull_secret=["x"])
        error = self.assertRaises(errors.Invalid, instance_image.read_requested_image, task)
        self.assertIn("instance_info.image_pull_secret: ******", error.message)


class RefusedTest(RegistryCase):
    def test_what_is_no_disk_image(self) -> None:
        container = {"artifactType": None, "config": {"mediaType": f"{OCI}.config.v1+json"}}
        for manifest, said in (
            (self.registry.manifest(**container), "deploy interface bootc, which Ingot has not"),
            (self.registry.manifest(b"1", b"2"), "not exactly one layer"),
            (self.registry.manifest(media="application/zstd"), "it is compressed (zstd)"),
            (self.registry.manifest(b"\x28\xb5\x2f\xfd" + bytes(100)), "it is compressed (zstd)"),
            (self.registry.manifest(layers=[{"digest": "md5:1"}]), "no digest of SHA-256 or SHA-512"),
            (self.registry.manifest(layers=[{"digest": f"sha256:{'0' * 64}"}]), "it answers HTTP 404"),
            (self.registry.manifest(layers="x"), "not exactly one layer"),
            ({"manifests": []}, "it is empty"),
            ({"manifests": [7, {"annotations": 3, "platform": []}]}, "no digest of SHA-256"),
            ({"manifests": [{"platform": {"architecture": ["x"]}}]}, "one is for ['x']"),
            ({"manifests": [{"annotations": {"disktype": {"x": 1}}}]}, "one is of disktype {'x': 1}"),
        ):
            self.registry.tags["latest"] = json.dumps(manifest).encode()
            self.assertIn(said, self.refused(self.of()))
        self.registry.tags["latest"] = json.dumps(self.registry.manifest(QCOW2)).encode()
        self.assertIn("it is qcow2, and is called raw", self.refused(self.of(image_disk_format="raw")))

    def test_a_long_list_makes_no_long_message(self) -> None:
        entries = [{"platform": {"architecture": f"machine-{number}"}} for number in range(5000)]
        for listed in (entries, entries[:1] * 5000):
            self.registry.tags["latest"] = json.dumps({"manifests": listed}).encode()
            message = self.refused(self.of())
            self.assertIn("one is for machine-0", message)
            self.assertLess(len(message), 2000)

    def test_what_is_no_registry(self) -> None:
        for content in (b"<html>", b"[]", b"[" * 100_000, b'{"a": ' * 100_000):
            self.registry.tags["latest"] = content
            self.assertIn("no manifest of latest", self.refused(self.of()))
        self.registry.tags["latest"] = bytes(5 * 1024 * 1024)
        self.assertIn("longer than", self.refused(self.of()))
        del self.registry.tags["latest"]
        self.assertIn("has no such image", self.refused(self.of()))
        for status, said in ((403, "image_pull_secret"), (429, "too many requests"), (500, "HTTP 500")):
            self.registry.answers["/v2/some/os/manifests/latest"] = (status, b"", {})
            self.assertIn(said, self.refused(self.of()))

    def test_one_that_never_ends(self) -> None:
        self.patch(fetches, "_PATIENCE", 0.1)
        for source in ("oci://127.0.0.1:1/a", f"oci://{self.slow()}/a"):
            task = self.of(source)
            task.conf.set_override("webserver_connection_timeout", 1)
            self.assertIn(source, self.refused(task))

    def slow(self) -> str:
        server = SlowServer()
        self.addCleanup(server.stop)
        return server.url.removeprefix("http://")

    def test_http_only_if_the_operator_permits_it(self) -> None:
        self.registry.tags["latest"] = json.dumps(self.registry.manifest()).encode()
        task = self.of()
        task.conf.set_override("permit_fallback_to_http_transport", False, group="oci")
        self.assertIn("it cannot be fetched", self.refused(task))
        self.assertEqual([], [path for path, _ in self.registry.asked if path.startswith("/v2")])


class SecretsTest(RegistryCase):
    """Who gets which secret."""

    def setUp(self) -> None:
        super().setUp()
        self.registry = self.make("Bearer")
        self.registry.tags["latest"] = json.dumps(self.registry.manifest()).encode()

    def sent(self, registry: Registry, start: str) -> set[str | None]:
        return {authorization for path, authorization in registry.asked if path.startswith(start)}

    def operators(self, task: fakes.MemoryTask, **auths: object) -> fakes.MemoryTask:
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "auth.json")
        path.write_text(json.dumps({"auths": {name: {"auth": value} for name, value in auths.items()}}))
        task.conf.set_override("authentication_config", str(path), group="oci")
        return task

    def test_a_token_for_this_image_is_passed_on_as_agents_take_it(self) -> None:
        task = self.of(image_pull_secret="ada:s3cret")
        image = self.ready(task)
        info = instance_image.build_image_info(task, image)
        self.assertEqual(base64.b64encode(b"Bearer t0ken").decode(), info["image_request_authorization"])
        self.assertEqual({f"Basic {base64.b64encode(b'ada:s3cret').decode()}"}, self.sent(self.registry, "/token"))
        (asked,) = [path for path, _ in self.registry.asked if path.startswith("/token")]
        self.assertIn("scope=repository%3Asome%2Fos%3Apull", asked, "and not for what the registry names")
        self.assertNotIn("t0ken", repr(image))
        self.assertEqual("******", masking.mask({"image_info": info})["image_info"]["image_request_authorization"])

    def test_forms_of_secrets(self) -> None:
        for given, expected in (
            ("ada:s3:cret", "ada:s3:cret"),
            (base64.b64encode(b"ada:s3cret").decode(), "ada:s3cret"),
            ("opaque", ":opaque"),
        ):
            self.registry.asked.clear()
            self.ready(self.of(image_pull_secret=given))
            self.assertEqual(
                {f"Basic {base64.b64encode(expected.encode()).decode()}"}, self.sent(self.registry, "/token")
            )

    def test_the_node_may_have_one_and_none_may_be_needed(self) -> None:
        task = self.of()
        task.node.driver_info = {"image_pull_secret": "node:own"}
        self.ready(task)
        self.ready(self.of())
        self.assertEqual({f"Basic {base64.b64encode(b'node:own').decode()}", None}, self.sent(self.registry, "/token"))

    def test_the_operators_is_for_the_registry_of_that_name(self) -> None:
        task = self.operators(self.of(), **{self.registry.host: base64.b64encode(b"site:s3cret").decode()})
        self.ready(task)
        self.assertEqual({f"Basic {base64.b64encode(b'site:s3cret').decode()}"}, self.sent(self.registry, "/token"))
        foreign = self.make("Bearer")
        foreign.realm = self.registry.realm  # anyone may name another's tokens
        foreign.tags["latest"] = self.registry.tags["latest"]
        self.registry.asked.clear()
        self.refused(
            self.operators(self.of(f"oci://{foreign.host}/some/os"), **{self.registry.host: "c2l0ZTpzM2NyZXQ="})
        )
        self.assertEqual({None}, self.sent(self.registry, "/token"))

    def test_a_file_that_cannot_be_used_is_named(self) -> None:
        for content in ("{", "[]", '{"auths": 3}', '{"auths": {"h": 1}}'):
            task = self.operators(self.of("oci://h/a"))
            pathlib.Path(task.conf.oci.authentication_config).write_text(content)
            self.assertIn("[oci] authentication_config", self.refused(task))

    def test_a_user_and_password_go_to_the_machine_only_if_they_are_the_users(self) -> None:
        self.registry.scheme = "Basic"
        for task in (
            self.of(),
            self.of(image_pull_secret="opaque"),
            self.operators(self.of(), **{self.registry.host: base64.b64encode(b"site:s3cret").decode()}),
        ):
            self.assertIn("has to be user:password", self.refused(task))
        self.assertEqual({None}, self.sent(self.registry, "/v2"))
        image = self.ready(self.of(image_pull_secret="ada:s3cret"))
        self.assertEqual(f"Basic {base64.b64encode(b'ada:s3cret').decode()}", image.authorization)

    def test_no_other_host_gets_the_token(self) -> None:
        other = self.make()
        manifest = self.registry.tags["latest"]
        other.answers["/there"] = (200, manifest, {})
        other.answers["/blob"] = (200, IMAGE, {})
        elsewhere = f"http://{other.host}"
        self.registry.blobs.clear()

        def decide(path: str, authorization: str | None, _before: Callable[..., Any] = self.registry.decide) -> Any:
            if authorization and "manifests" in path:
                return 307, b"", {"Location": f"{elsewhere}/there"}
            if authorization and "blobs" in path:
                return 307, b"", {"Location": f"{elsewhere}/blob"}
            return _before(path, authorization)

        self.registry.decide = decide  # type: ignore[method-assign]
        self.ready(self.of(image_pull_secret="ada:s3cret"))
        self.assertEqual([("/there", None), ("/blob", None)], other.asked)

    def test_what_registries_say_that_is_no_token(self) -> None:
        for token in ("", "a b", "x" * 20_000, "a\r\nEvil: 1", None):
            self.registry.token = token  # type: ignore[assignment]
            self.assertIn("no token that could be used", self.refused(self.of(image_pull_secret="a:b")))
        for challenge, said in (
            ("Negotiate", "does not know"),
            ('Bearer realm="ftp://x"', "neither http nor https"),
            ('Bearer service="x"', "neither http nor https"),
        ):
            self.registry.answers["/v2/some/os/manifests/latest"] = (401, b"", {"WWW-Authenticate": challenge})
            self.assertIn(said, self.refused(self.of(image_pull_secret="ada:s3cret")))

    def test_no_message_has_a_secret(self) -> None:
        self.registry.answers["/token?service=registry&scope=repository%3Asome%2Fos%3Apull"] = (403, b"ada:s3cret", {})
        message = self.refused(self.of(image_pull_secret="ada:s3cret"))
        self.assertIn("refuses it: check instance_info.image_pull_secret", message)
        self.assertNotIn("s3cret", message)


class ReferenceTest(fakes.DriverTestCase):
    def test_names_that_container_tools_know(self) -> None:
        for source, expected in (
            ("oci://docker.io/library/os", ("registry-1.docker.io", "library/os", "latest")),
            ("oci://quay.io/a/b__c/d-e.f:v1.2-x", ("quay.io", "a/b__c/d-e.f", "v1.2-x")),
            ("oci://[2001:db8::1]:5000/os", ("[2001:db8::1]:5000", "os", "latest")),
        ):
            found = oci.parse(source)
            assert found is not None
            self.assertEqual(expected, (found.host, found.name, found.version))
