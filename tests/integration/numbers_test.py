"""Numbers that went bad: a loss or gradient that is not finite stops the job or is left out, always the same."""
import data
from cluster import Cluster, ClusterTest

HUGE_ROW = 137
SKIP = "training.non_finite=skip"
EPOCHS = 3


class NumbersTest(ClusterTest):
    def setUp(self):
        super().setUp()
        self.job = data.rows_job(self.folder, huge=[HUGE_ROW])
        self.good = data.write_libsvm(f"{self.folder}/good.svm", 100)
        # 400 examples in batches of 64: the last step of an epoch is short, and may be the huge one.
        self.set = [f"training.epochs={EPOCHS}", "dataset.shuffle=false",
                    f"dataset.test_files={self.good}"]

    def test_a_huge_value_stops_the_job_by_default(self):
        """C19, C31: row 137 of unshuffled data in batches of 64 is in step 2, micro-batch 0."""
        cluster = Cluster(self, self.job, set=self.set, min_workers=2)
        for start in (cluster.server, cluster.worker, cluster.worker):
            start()
        summary = cluster.finish(status=1)
        self.assertRegex(summary["failure"], r"step 2, micro-batch 0: .*not finite")

    def test_skip_leaves_out_the_same_steps_whoever_computes_them(self):
        """Also with the order of the data shuffled."""
        flags = {"set": [*self.set, SKIP, "dataset.shuffle=true"]}
        one = self.run_job(self.job, **flags)
        self.assertEqual(one["examples_skipped"] + one["examples"], EPOCHS * 400)
        self.assertGreater(one["examples_skipped"], 0)
        self.assertEqual(one["steps"], EPOCHS * 7)
        many = self.run_job(self.job, servers=3, workers=3, **flags)
        for same in ("params_digest", "examples_skipped", "examples", "epoch_losses", "eval"):
            self.assertEqual(many[same], one[same], same)

    def test_skipped_step_changes_nothing(self):
        """Adam's own count of updates does not move either: the job without those examples ends in the same
        bits when they are a step of their own."""
        rows = data.write_libsvm(f"{self.folder}/cut.svm", 400)
        with open(rows, encoding="ascii") as file:
            lines = file.readlines()
        with open(rows, "w", encoding="ascii") as file:
            file.writelines(lines[:128] + lines[192:])
        skipped = self.run_job(self.job, set=["training.steps=7", SKIP,
                                              *self.set[1:]])
        cut = self.run_job(self.job, set=["training.steps=6", f"dataset.train_files={rows}", *self.set[1:]])
        self.assertEqual(skipped["examples_skipped"], 64)
        self.assertEqual(skipped["params_digest"], cut["params_digest"])

    def test_coordinator_says_what_was_left_out(self):
        cluster = Cluster(self, self.job, set=[*self.set, SKIP])
        cluster.server()
        cluster.worker()
        cluster.finish()
        self.assertRegex(cluster.coordinator.text(), "left out: step 2, micro-batch 0: .*not finite")

    def test_asynchronous_leaves_out_the_micro_batch(self):
        flags = {"set": [*self.set, SKIP, "training.consistency.async={}"]}
        summary = self.run_job(self.job, servers=2, workers=2, **flags)
        self.assertEqual(summary["examples_skipped"], EPOCHS * 16)
        self.assertEqual(summary["examples"], EPOCHS * (400 - 16))
        # Each shard is through with every micro-batch, those left out among them.
        for applied in summary["applied"]:
            self.assertEqual(applied, [[0, EPOCHS * 7 * 4]])

    def test_evaluation_leaves_out_the_example(self):
        bad = data.write_libsvm(f"{self.folder}/bad.svm", 100, huge=[7])
        flags = [*self.set[:2], f"dataset.train_files={self.good}", f"dataset.test_files={bad}"]
        skipped = self.run_job(self.job, set=[*flags, SKIP, "evaluation.batch_size=10"])
        with open(bad, encoding="ascii") as file:
            lines = file.readlines()
        rest = f"{self.folder}/rest.svm"
        with open(rest, "w", encoding="ascii") as file:
            file.writelines(lines[:7] + lines[8:])
        whole = self.run_job(self.job, set=[*flags[:3], f"dataset.test_files={rest}"])
        self.assertEqual(sorted(skipped["eval"]), sorted(whole["eval"]))
        for name, value in whole["eval"].items():
            self.assertAlmostEqual(skipped["eval"][name], value, 6, name)
        # A chunk that has nothing else says that the weights are wrong, as far as anyone can tell.
        for more, text in (([SKIP, "evaluation.batch_size=1"], "test examples 7 to 7: .* 1 of them"),
                           (["evaluation.batch_size=10"], "test examples 0 to 9: .* 1 of them")):
            cluster = Cluster(self, self.job, set=[*flags, *more])
            cluster.server()
            cluster.worker()
            self.assertRegex(cluster.finish(status=1)["failure"], text)
