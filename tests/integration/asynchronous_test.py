"""Asynchronous and bounded training apply every micro-batch exactly once on every shard."""
import data
from cluster import Cluster, ClusterTest

EPOCHS = 300
STEPS = 16 * EPOCHS
REPLICAS = 4


class AsynchronousTest(ClusterTest):
    def setUp(self):
        super().setUp()
        self.job = data.picture_job(self.folder)

    def start(self, consistency, servers=2, workers=3, **flags):
        cluster = Cluster(self, self.job, servers,
                          set=[f"training.consistency.{consistency}", f"training.epochs={EPOCHS}"],
                          **flags)
        return (cluster, [cluster.server() for _ in range(servers)],
                [cluster.worker() for _ in range(workers)])

    def check(self, summary, servers=2):
        self.assertEqual(summary["examples"], EPOCHS * 1003)
        self.assertEqual(summary["applied"], [[[0, STEPS * REPLICAS]]] * servers)
        self.assertFalse(summary["reproducible"])
        self.assertGreater(summary["eval"]["accuracy"], 0.6)

    def kill_two(self, consistency):
        cluster, servers, workers = self.start(consistency)
        updates = cluster.wait_for_step(servers[0], 500)
        workers[0].kill()
        cluster.worker()
        cluster.wait_for_step(servers[0], updates + 500)
        workers[1].kill()
        cluster.worker()
        summary = cluster.finish()
        self.check(summary)
        self.assertGreater(summary["leases_expired"], 0)

    def test_workers_are_killed_while_nothing_waits(self):
        self.kill_two("async={}")

    def test_workers_are_killed_within_a_bound(self):
        self.kill_two("bounded.staleness=2")

    def test_frozen_worker_pushes_again_what_others_pushed(self):
        cluster, servers, workers = self.start("bounded.staleness=1", lease_timeout_ms=1000)
        updates = cluster.wait_for_step(servers[0], 500)
        workers[0].freeze()
        cluster.wait_for_step(servers[0], updates + 3000)
        workers[0].thaw()
        self.check(cluster.finish())

    def test_server_is_killed_and_replaced(self):
        cluster, servers, _ = self.start("async={}")
        cluster.wait_for_step(servers[0], 500)
        servers[0].kill()
        cluster.server()
        summary = cluster.finish()
        self.check(summary)
        self.assertEqual(summary["rollbacks"], 1)

    def test_no_staleness_and_one_replica_is_sequential(self):
        """Nothing is left to timing: the same bits for any number of processes."""
        flags = ["training.consistency.bounded.staleness=0", "training.replicas=1",
                 "training.epochs=3"]
        one = self.run_job(self.job, 1, 1, set=flags)
        self.assertTrue(one["reproducible"])
        self.assertEqual(self.run_job(self.job, 2, 3, set=flags)["params_digest"],
                         one["params_digest"])
