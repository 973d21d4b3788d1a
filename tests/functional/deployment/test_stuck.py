"""Why is it stuck? A machine that does not boot, and one whose kernel is not there."""

import testtools

from tests import patience
from tests.functional.deployment import lab
from tests.functional.deployment.test_faults import MACHINE


class Stuck(testtools.TestCase):
    def available(self, **settings: object) -> tuple[lab.Lab, str]:
        bench = self.useFixture(lab.Lab(**settings))
        uuid = bench.enroll()
        bench.make_available(uuid)
        bench.set_image(uuid)
        return bench, uuid

    def test_a_machine_that_never_boots_is_explained_until_it_fails(self) -> None:
        patient = {"conductor": {"deploy_callback_timeout": int(patience.seconds(20))}}  # for the explanations before
        bench, uuid = self.available(options=patient)
        bench.rack.control.order_fault(MACHINE, "boot_hang")
        bench.user.provision(uuid, "active")
        bench.reach(uuid, "wait call-back")
        found = bench.user.get(f"/ingot/v1/nodes/{uuid}/explanation")
        self.assertEqual(("boot script", "deploy.deploy"), (found["kind"], found["step"]))
        self.assertIn("the node becomes 'deploy failed'", found["next"])
        self.assertLess(found["since"], found["until"])
        self.assertEqual("boot script fetched", found["last_sign"]["what"])  # for the cleaning before
        self.assertLess(found["last_sign"]["at"], found["since"])
        command = bench.make(["ingot-status"], "status", "explain", uuid).start()
        command.wait()
        self.assertIn(found["waits_for"], (bench.directory / "status.log").read_text())
        node = bench.reach(uuid, "deploy failed")
        self.assertIn("last heard never", node["last_error"])
        self.assertEqual("request", bench.user.get(f"/ingot/v1/nodes/{uuid}/explanation")["kind"])

    def test_a_kernel_that_is_not_there_fails_the_deployment_at_once(self) -> None:
        bench, uuid = self.available()
        bench.user.patch(f"/v1/nodes/{uuid}", {"/driver_info/deploy_kernel": f"{bench.files.url}/other.kernel"})
        bench.user.provision(uuid, "active")
        node = bench.reach(uuid, "deploy failed")
        missing = f"driver_info.deploy_kernel: {bench.files.url}/other.kernel: it answers HTTP 404"
        self.assertIn(missing, node["last_error"])
