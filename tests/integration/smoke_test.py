"""One small cluster that lives through what clusters live through; sanitizers watch it."""
import data
from cluster import Cluster, ClusterTest


class SmokeTest(ClusterTest):
    def test_cluster(self):
        job = data.picture_job(self.folder)
        flags = ["training.epochs=20", "evaluation.every_epochs=10"]
        undisturbed = self.run_job(job, 1, 1, set=flags)
        cluster = Cluster(self, job, 2, set=flags, min_workers=2)
        servers = [cluster.server(), cluster.server()]
        workers = [cluster.worker("--threads=2"), cluster.worker()]
        cluster.wait_for_step(servers[0], 20)
        workers[1].kill()
        servers[1].kill()
        cluster.server()
        cluster.worker()
        self.assertEqual(cluster.finish()["params_digest"], undisturbed["params_digest"])

    def test_asynchronous_cluster(self):
        job = data.picture_job(self.folder)
        summary = self.run_job(job, 2, 3, set=["training.epochs=3", "training.consistency.async={}"])
        self.assertEqual(summary["applied"], [[[0, 48 * 4]]] * 2)

    def test_tandem(self):
        tandem = self.tandem("local", f"--job={data.rows_job(self.folder)}", "--workers=2")
        self.assertEqual(tandem.wait(), 0, tandem.said())
