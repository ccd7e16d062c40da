"""Every process dies at the worst moments, by name: the job ends in the same bits."""
import os

import data
from cluster import Cluster, ClusterTest, free_port

EPOCHS = 40  # 640 steps.
SETTINGS = [f"training.epochs={EPOCHS}", "checkpoint.every_steps=50"]
STANDBY = "servers.standby=1"


class FaultPointsTest(ClusterTest):
    def setUp(self):
        super().setUp()
        self.job = data.picture_job(self.folder)
        self.state_dir = os.path.join(self.folder, "state")

    def die(self, role, point, *settings):
        """A process of `role` dies at `point` and is started again, the job goes on. The summary."""
        undisturbed = self.run_job(self.job, set=SETTINGS)
        armed = f"--enable_fault_points={point}=kill"
        cluster = Cluster(self, self.job, 2, start=False, port=free_port(), state_dir=self.state_dir,
                          set=[*SETTINGS, *settings])
        plain = cluster.argv
        cluster.argv = plain + [armed] if role == "coordinator" else plain
        cluster.start_coordinator()
        servers = [cluster.server(), cluster.server(*[armed] if role == "server" else [])]
        worker = cluster.worker(*[armed] if role == "worker" else [])
        victim = {"coordinator": cluster.coordinator, "server": servers[1], "worker": worker}[role]
        self.assertEqual(victim.wait(), -9, f"{point} is not reached\n{cluster.said()}")
        victim.killed = True
        cluster.argv = plain
        {"coordinator": cluster.start_coordinator, "server": cluster.server,
         "worker": cluster.worker}[role]()
        summary = cluster.finish()
        self.said = cluster.said()
        for same in ("params_digest", "steps", "examples", "epoch_losses", "eval"):
            self.assertEqual(summary[same], undisturbed[same], same)
        self.assertEqual(summary["checkpoints_failed"], 0, self.said)
        checked = self.tandem("checkpoint", "verify", self.state_dir)
        self.assertEqual(checked.wait(), 0, checked.said())
        return summary

    def test_server_dies_between_two_shards_applies(self):
        self.assertEqual(self.die("server", "apply@500")["rollbacks"], 1)

    def test_server_dies_in_the_middle_of_a_checkpoint_file(self):
        """C15."""
        self.assertEqual(self.die("server", "checkpoint_mid_write@3")["rollbacks"], 1)

    def test_server_dies_when_its_checkpoint_file_is_written(self):
        self.assertEqual(self.die("server", "checkpoint_written@3")["rollbacks"], 1)

    def test_coordinator_dies_between_a_checkpoints_renaming_and_its_manifest(self):
        self.assertEqual(self.die("coordinator", "checkpoint_renamed@3")["rollbacks"], 0)

    def test_coordinator_dies_after_a_manifest(self):
        self.assertEqual(self.die("coordinator", "manifest_written@3")["rollbacks"], 0)

    def test_coordinator_dies_after_its_first_record_and_before_anybody_knows(self):
        self.assertEqual(self.die("coordinator", "journal_appended@1")["rollbacks"], 0)

    def test_coordinator_dies_after_its_second_record_and_before_anybody_knows(self):
        self.assertEqual(self.die("coordinator", "journal_appended@2")["rollbacks"], 0)

    def test_worker_dies_when_a_push_is_sent_and_not_acknowledged(self):
        self.assertEqual(self.die("worker", "push_sent@700")["rollbacks"], 0)

    def test_standby_dies_when_it_has_a_push_and_has_not_said_so(self):
        self.assertEqual(self.die("server", "standby_applied@500", STANDBY)["rollbacks"], 0)

    def test_primary_dies_when_its_standby_has_a_push_and_it_has_not(self):
        summary = self.die("server", "standby_acknowledged@500", STANDBY)
        self.assertEqual((summary["rollbacks"], summary["promotions"]), (0, 1), self.said)

