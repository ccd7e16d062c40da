"""The bits of the weights are a function of the job and its seed: of nothing else."""
import data
from cluster import ClusterTest


class DigestTest(ClusterTest):
    def setUp(self):
        super().setUp()
        self.job = data.picture_job(self.folder)

    def digest(self, servers, workers, *assignments):
        summary = self.run_job(self.job, servers, workers, set=list(assignments))
        self.assertEqual(summary["examples"], 2 * 1003)
        self.assertTrue(summary["reproducible"])
        return summary["params_digest"]

    def test_is_the_same_for_any_number_of_processes(self):
        one = self.digest(1, 1)
        self.assertEqual(len(one), 32)
        self.assertEqual(self.digest(2, 3), one)
        self.assertEqual(self.digest(3, 5), one)

    def test_is_the_same_with_replicas_that_share_nothing_evenly(self):
        """A job with 7 replicas: workers hold ranges of 2, 3 and 1, and subtrees that are not full."""
        one = self.digest(1, 1, "training.replicas=7")
        self.assertEqual(self.digest(2, 3, "training.replicas=7"), one)
        self.assertNotEqual(self.digest(2, 3), one)

    def test_short_last_batch_ends_and_counts_every_example_once(self):
        """C5: 1,003 examples, batch 64, 3 replicas, 2 workers."""
        one = self.digest(1, 1, "training.replicas=3")
        self.assertEqual(self.digest(1, 2, "training.replicas=3"), one)

    def test_replicas_without_examples_change_nothing(self):
        """Of the last batch of 3 examples, 13 of 16 replicas have none."""
        flags = ("training.replicas=16", "training.global_batch_size=50")
        self.assertEqual(self.digest(2, 3, *flags), self.digest(1, 1, *flags))

    def test_another_seed_gives_other_weights(self):
        self.assertNotEqual(self.digest(1, 1, "seed=99"), self.digest(1, 1))

    def test_servers_without_a_block_are_normal_members(self):
        """C23: one layer of one unit, five servers."""
        job = data.rows_job(self.folder)
        many = self.run_job(job, 5, 2)
        self.assertEqual(many["steps"], 20)
        self.assertEqual(many["params_digest"], self.run_job(job, 1, 1)["params_digest"])
        asynchronous = self.run_job(job, 5, 2, set="training.consistency.async={}")
        self.assertEqual(asynchronous["applied"], [[[0, 20 * 4]]] * 5)
