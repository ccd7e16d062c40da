"""Whoever dies, freezes, comes late or leaves: synchronous training ends in the same bits."""
import os
import shutil
import signal
import tempfile

import data
from cluster import Cluster, ClusterTest

EPOCHS = 600  # 16 steps each: two or three seconds, so that what happens at step 500 is in the middle.
EARLY = 500
# More steps than any worker holds leases of: the shard gets so far only when others have taken over.
PAST_ANY_LEASE = 700


class FailuresTest(ClusterTest):
    @classmethod
    def setUpClass(cls):
        cls.job_folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        cls.job = data.picture_job(cls.job_folder)
        cls.undisturbed = None

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.job_folder)

    def setUp(self):
        super().setUp()
        if FailuresTest.undisturbed is None:
            FailuresTest.undisturbed = self.run_job(self.job, set=f"training.epochs={EPOCHS}")

    def start(self, servers=2, workers=2, **flags):
        """A cluster in the middle of its job, and its servers and workers."""
        cluster = Cluster(self, self.job, servers, set=f"training.epochs={EPOCHS}", **flags)
        server_processes = [cluster.server() for _ in range(servers)]
        worker_processes = [cluster.worker() for _ in range(workers)]
        cluster.wait_for_step(server_processes[0], EARLY)
        return cluster, server_processes, worker_processes

    def finish(self, cluster):
        """Ends the job, which must not differ from the undisturbed one. The summary."""
        summary = cluster.finish()
        for same in ("params_digest", "steps", "epochs", "examples", "epoch_losses", "final_loss",
                     "eval"):
            self.assertEqual(summary[same], self.undisturbed[same], same)
        return summary

    def test_worker_is_killed(self):
        cluster, _, workers = self.start()
        workers[0].kill()
        summary = self.finish(cluster)
        self.assertGreater(summary["leases_expired"], 0)
        self.assertEqual(summary["rollbacks"], 0)

    def test_worker_is_frozen_past_its_lease_and_goes_on(self):
        cluster, servers, workers = self.start(lease_timeout_ms=1000)
        workers[0].freeze()
        step = cluster.wait_for_step(servers[0], 0)
        cluster.wait_for_step(servers[0], step + PAST_ANY_LEASE)
        workers[0].thaw()
        summary = self.finish(cluster)
        self.assertGreater(summary["leases_expired"], 0)

    def test_worker_joins_late(self):
        cluster, _, _ = self.start(workers=1)
        cluster.worker()
        self.assertEqual(self.finish(cluster)["workers_seen"], 2)

    def test_lone_worker_is_killed_and_replaced(self):
        """C16: the coordinator waits, says so, and goes on with another worker."""
        cluster, _, workers = self.start(workers=1)
        workers[0].kill()
        cluster.coordinator.wait_for(r"waiting .*workers: 0 of 1")
        cluster.worker()
        self.assertEqual(self.finish(cluster)["workers_seen"], 2)

    def test_worker_is_killed_and_started_again_three_times(self):
        """C26: nobody else could go on."""
        cluster, servers, workers = self.start(workers=1)
        for _ in range(3):
            workers[-1].kill()
            step = cluster.wait_for_step(servers[0], 0)
            workers.append(cluster.worker())
            cluster.wait_for_step(servers[0], step + 1)
        self.assertEqual(self.finish(cluster)["workers_seen"], 4)

    def test_worker_told_to_leave_hands_its_leases_back(self):
        """The others go on at once: no lease could lapse before the test is over."""
        cluster, servers, workers = self.start(lease_timeout_ms=10**9)
        workers[0].send(signal.SIGTERM)
        self.assertEqual(workers[0].wait(10), 0, workers[0].said())
        step = cluster.wait_for_step(servers[0], 0)
        cluster.wait_for_step(servers[0], step + PAST_ANY_LEASE)
        self.finish(cluster)

    def test_server_is_killed_and_another_started(self):
        """C1, C2, C4: the coordinator says who is missing; another address will do."""
        cluster, servers, _ = self.start()
        servers[0].kill()
        cluster.coordinator.wait_for(f"waiting .*servers: 1 of 2 .*{servers[0].address()}")
        cluster.server()
        self.assertEqual(self.finish(cluster)["rollbacks"], 1)

    def test_spare_server_takes_the_place_of_a_killed_one(self):
        cluster, servers, _ = self.start()
        cluster.server()
        servers[1].kill()
        self.assertEqual(self.finish(cluster)["rollbacks"], 1)

    def test_server_told_to_leave_exits_0_and_is_replaced(self):
        cluster, servers, _ = self.start()
        servers[1].send(signal.SIGTERM)
        self.assertEqual(servers[1].wait(10), 0, servers[1].said())
        cluster.server()
        self.assertEqual(self.finish(cluster)["rollbacks"], 1)

    def test_server_is_frozen_past_its_lease_and_goes_on(self):
        cluster, servers, _ = self.start(lease_timeout_ms=1000)
        servers[0].freeze()
        cluster.coordinator.wait_for(r"waiting .*servers: 1 of 2")
        servers[0].thaw()
        # Nobody could take its place, so what it holds is what the job goes on with.
        self.assertEqual(self.finish(cluster)["rollbacks"], 0)

    def test_worker_frozen_past_the_end_of_the_job_ends(self):
        """C17."""
        cluster, _, workers = self.start(workers=1, lease_timeout_ms=1000)
        frozen = cluster.worker("--coordinator_timeout=2")
        frozen.freeze()
        cluster.coordinator.wait()
        frozen.thaw()
        self.assertIn(frozen.wait(20), (0, 200), frozen.said())
        self.assertEqual(workers[0].wait(20), 0)

    def test_killed_coordinator_ends_servers_and_workers_with_200(self):
        """C17, C18: a restart may cure it."""
        cluster = Cluster(self, self.job, set=f"training.epochs={EPOCHS}")
        server = cluster.server("--coordinator_timeout=1")
        worker = cluster.worker("--coordinator_timeout=1")
        cluster.wait_for_step(server, EARLY)
        cluster.coordinator.kill()
        self.assertEqual((server.wait(30), worker.wait(30)), (200, 200), cluster.said())
        self.assertRegex(worker.text(), "coordinator has not answered")


class EvaluationTest(ClusterTest):
    def test_killed_workers_examples_count_once(self):
        """C7: a worker dies during an evaluation of thousands of chunks, which takes a second or more."""
        job = data.picture_job(self.folder, tests=10007)
        flags = {"set": ["training.steps=40", "evaluation.batch_size=1",
                         "model.layers.1.dense.units=10000"]}
        undisturbed = self.run_job(job, **flags)
        cluster = Cluster(self, job, **flags)
        server = cluster.server()
        workers = [cluster.worker(), cluster.worker()]
        cluster.wait_for_step(server, 40)
        workers[0].kill()
        summary = cluster.finish()
        self.assertGreater(summary["leases_expired"], 0)
        for same in ("eval", "params_digest"):
            self.assertEqual(summary[same], undisturbed[same])

    def test_evaluating_on_the_way_changes_nothing(self):
        job = data.picture_job(self.folder)
        every = self.run_job(job, 2, 3, set=["training.epochs=3", "evaluation.every_epochs=1"])
        once = self.run_job(job, set="training.epochs=3")
        for same in ("eval", "params_digest", "epoch_losses"):
            self.assertEqual(every[same], once[same])
