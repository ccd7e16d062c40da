"""Processes find each other in any order, say whom they wait for, and name what is wrong."""
import os
import signal
import socket
import subprocess
import time
from unittest import mock

import data
import protos
from cluster import (COORDINATOR, PS_SERVER, TANDEM, WORKER, Cluster, ClusterTest, Process, free_port,
                     wait_until)


class OrderTest(ClusterTest):
    def setUp(self):
        super().setUp()
        self.job = data.picture_job(self.folder)

    def test_any_order_ends_in_the_same_bits(self):
        digests = set()
        for order in ("csw", "cws", "scw", "swc", "wcs", "wsc"):
            cluster = Cluster(self, self.job, servers=2, start=False, min_workers=2)
            start = {"c": cluster.start_coordinator,
                     "s": lambda c=cluster: (c.server(), c.server()),
                     "w": lambda c=cluster: (c.worker(), c.worker())}
            for who in order:
                start[who]()
            digests.add(cluster.finish()["params_digest"])
        self.assertEqual(len(digests), 1)

    def test_who_waits_says_for_whom(self):
        """C3, C24: of two servers one is there, of three workers one."""
        cluster = Cluster(self, self.job, servers=2, min_workers=3)
        cluster.server()
        first = cluster.worker()
        lost = Process("lost", [WORKER, f"--coordinator=127.0.0.1:{free_port()}"], cluster.folder)
        cluster.processes.append(lost)
        cluster.coordinator.wait_for(r"waiting for servers: 1 of 2; workers: 1 of 3, \d+ s")
        first.wait_for(r"waiting with the coordinator for .*servers: \d of 2")
        lost.wait_for(r"waiting for the coordinator at 127.0.0.1:\d+ for \d+ s: .*refused")
        lost.kill()
        cluster.server()
        cluster.worker()
        cluster.worker()
        self.assertEqual(cluster.finish()["workers_seen"], 3)

    def test_proxies_of_the_environment_are_ignored(self):
        nobody = f"http://127.0.0.1:{free_port()}"
        names = ("http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy")
        with mock.patch.dict(os.environ, {name: nobody for name in names}):
            cluster = Cluster(self, self.job)
            cluster.server()
            cluster.worker()
            self.assertEqual(cluster.finish()["status"], "ok")

    def test_a_server_may_be_known_by_another_address_than_it_opens(self):
        port = free_port()
        cluster = Cluster(self, self.job)
        cluster.server(f"--listen=0.0.0.0:{port}", f"--advertise=127.0.0.1:{port}")
        cluster.worker()
        self.assertEqual(cluster.finish()["status"], "ok")

    def test_log_in_a_file_has_few_lines_and_no_carriage_return(self):
        """C52: more than a thousand steps."""
        cluster = Cluster(self, self.job, set="training.epochs=100")
        cluster.server()
        cluster.worker()
        cluster.worker()
        self.assertEqual(cluster.finish()["steps"], 1600)
        text = "".join(p.text("out") + p.text() for p in cluster.processes)
        self.assertLess(text.count("\n"), 30, text)
        self.assertNotIn("\r", text)
        self.assertNotIn("\x1b", text)


class ExitStatusTest(ClusterTest):
    def setUp(self):
        super().setUp()
        self.job = data.picture_job(self.folder)

    def run_to_end(self, *argv):
        return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding="utf-8", timeout=30, check=False)

    def check_refused(self, argv, pattern):
        """Exit status 2, and one line on stderr that matches."""
        done = self.run_to_end(*argv)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertRegex(done.stderr, r"\A[^\n]*" + pattern + r"[^\n]*\n\Z")

    def test_help_is_complete_and_ends_with_0(self):
        for argv in ([COORDINATOR, "--help"], [PS_SERVER, "--help"], [WORKER, "--help"],
                     [TANDEM, "--help"], [TANDEM, "local", "--help"], [TANDEM, "local", "-h"]):
            done = self.run_to_end(*argv)
            self.assertEqual((done.returncode, done.stderr), (0, ""), argv)
            self.assertGreaterEqual(done.stdout.count("\n"), 5, argv)
        for flag in ("job", "set", "servers", "workers", "summary", "threads", "lease_timeout_ms"):
            self.assertIn(f"--{flag}", done.stdout)

    def test_bad_flags(self):
        job = f"--job={self.job}"
        for argv, pattern in (
                ([TANDEM], "expected a command"),
                ([TANDEM, "lcoal"], '"lcoal".*did you mean local'),
                ([TANDEM, "local"], "--job: is required"),
                ([TANDEM, "local", job, "--bogus"], "unknown flag --bogus"),
                ([TANDEM, "local", job, "--servers=0"], "--servers: is 0; expected"),
                ([TANDEM, "local", job, "--workers=0"], "--workers: is 0; expected"),
                ([TANDEM, "local", job, "--workers=1001"], "--workers: is 1001; expected"),
                ([TANDEM, "local", job, "--workers=two"], "--workers=two: expected"),
                ([TANDEM, "local", job, "--lease_timeout_ms=1"], "--lease_timeout_ms: expected"),
                ([TANDEM, "local", job, "stray"], "stray"),
                ([COORDINATOR], "--job: is required"),
                ([COORDINATOR, job, "--servers=0"], "--servers: is 0"),
                ([COORDINATOR, job, "--min_workers=0"], "--min_workers: is 0"),
                ([COORDINATOR, job, "--listen=nonsense"], "nonsense"),
                ([PS_SERVER], "--coordinator: is required"),
                ([PS_SERVER, "--coordinator=127.0.0.1:1", "--listen=nonsense"], "nonsense"),
                ([PS_SERVER, "--coordinator=127.0.0.1:1", "--listen=0.0.0.0:0"],
                 "--advertise: is required"),
                ([WORKER], "--coordinator: is required"),
                ([WORKER, "--coordinator=127.0.0.1:1", "--device=cuda:0"], "--device=cuda:0"),
                ([WORKER, "--coordinator=127.0.0.1:1", "--bogus=1"], "unknown flag --bogus")):
            with self.subTest(" ".join(argv[1:]) or os.path.basename(argv[0])):
                self.check_refused(argv, pattern)

    def test_bad_jobs(self):
        def file(name, text):
            path = os.path.join(self.folder, name)
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
            return path
        rows = data.rows_job(self.folder)
        bad_rows = file("bad.svm", "1 3:1 5:1\n0 x:1\n")
        for job, assignments, pattern in (
                (file("misspelt", 'nam: "x"'), (), r'misspelt:1:\d+.*"nam"; did you mean "name"'),
                (file("empty", ""), (), r"empty: is empty; expected a JobSpec"),
                ("/nonexistent", (), "/nonexistent"),
                ("/tmp", (), "/tmp"),
                (self.job, ("training.nope=1",), 'training.nope=1.*"nope"'),
                (self.job, ("training.replicas=0",), r"training\.replicas: is 0"),
                (self.job, ("training.replicas=-3",), r"training\.replicas=-3"),
                (self.job, ("training.global_batch_size=0",), r"training\.global_batch_size: is 0"),
                (self.job, ("training.epochs=-1",), r"training\.epochs=-1"),
                (self.job, ("optimizer.adam.learning_rate=nan",), r"optimizer\.adam\.learning_rate"),
                (self.job, ("optimizer.adam.learning_rate=abc",), "learning_rate=abc: expected"),
                (self.job, ("dataset.train_files=/nonexistent",), "/nonexistent"),
                (self.job, ("model.layers.1.dense.activation=rleu",), r"model\.layers\[1\].*rleu.*relu"),
                (self.job, ("model.layers.2.dense.units=3",), "label"),
                (rows, (f"dataset.train_files={bad_rows}",), r"bad\.svm:2"),
                (rows, ("dataset.libsvm.num_features=5",), r"train\.svm:\d+")):
            with self.subTest(f"{os.path.basename(job)} {' '.join(assignments)}"):
                flags = [f"--job={job}", *(f"--set={a}" for a in assignments)]
                self.check_refused([COORDINATOR, *flags], pattern)
                self.check_refused([TANDEM, "local", "--servers=1", "--workers=1", *flags], pattern)

    def test_port_in_use(self):
        """C21."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            self.check_refused([COORDINATOR, f"--job={self.job}", f"--listen={address}"], address)
            self.check_refused([PS_SERVER, "--coordinator=127.0.0.1:1", f"--listen={address}"],
                               address)

    def test_no_coordinator_is_200_and_named(self):
        """C3: a name that does not resolve, a port that refuses."""
        for address in ("nowhere.invalid:7000", f"127.0.0.1:{free_port()}"):
            for executable in (PS_SERVER, WORKER):
                done = self.run_to_end(executable, f"--coordinator={address}",
                                       "--coordinator_timeout=2")
                self.assertEqual(done.returncode, 200, done.stderr)
                self.assertIn(address.split(":")[0], done.stderr)
                self.assertLess(done.stderr.count("\n"), 10, done.stderr)

    def test_loss_that_is_not_finite(self):
        """C19, C31: the failure names the step; every process ends with 1."""
        cluster = Cluster(self, self.job, set="optimizer.sgd.learning_rate=1e30", min_workers=2)
        server = cluster.server()
        workers = [cluster.worker(), cluster.worker()]
        summary = cluster.finish(status=1)
        self.assertEqual(summary["status"], "failed")
        self.assertRegex(summary["failure"], r"step \d+, micro-batch \d+: .*not finite")
        self.assertIn(summary["failure"], cluster.coordinator.text())
        self.assertEqual([p.wait() for p in [server, *workers]], [1, 1, 1])

    def test_coordinator_told_to_stop(self):
        cluster = Cluster(self, self.job, set="training.epochs=2000")
        server = cluster.server()
        cluster.worker()
        cluster.wait_for_step(server, 100)
        cluster.coordinator.send(signal.SIGTERM)
        self.assertEqual(cluster.finish(status=1)["status"], "failed")

    def test_terminated_before_the_job_starts(self):
        for executable in (PS_SERVER, WORKER):
            process = Process("early", [executable, f"--coordinator=127.0.0.1:{free_port()}"],
                              self.folder)
            self.addCleanup(lambda p=process: p.runs() and p.kill())
            # It has set its signals up when it has two threads.
            while len(os.listdir(f"/proc/{process.pid}/task")) < 2:
                time.sleep(0.01)
            process.send(signal.SIGTERM)
            self.assertEqual(process.wait(10), 0, process.said())

    def test_summary_that_cannot_be_written(self):
        cluster = Cluster(self, self.job, summary="/nonexistent/summary.json")
        cluster.server()
        cluster.worker()
        self.assertEqual(cluster.coordinator.wait(), 1)
        self.assertIn("/nonexistent/summary.json", cluster.coordinator.text())

    def test_flags_from_the_environment(self):
        cluster = Cluster(self, self.job)
        environment = {"TANDEM_COORDINATOR": cluster.address, "TANDEM_THREADS": "1"}
        for executable in (PS_SERVER, WORKER):
            cluster.processes.append(
                Process(os.path.basename(executable), [executable], cluster.folder, environment))
        cluster.finish()

    def test_health_of_a_server_is_of_its_shard(self):
        cluster = Cluster(self, self.job)
        server = cluster.server()
        def health():
            with protos.connect(server.address()) as channel:
                return protos.call(channel, "grpc.health.v1.Health/Check",
                                   protos.health_pb2.HealthCheckRequest(),
                                   protos.health_pb2.HealthCheckResponse).status
        serving = protos.health_pb2.HealthCheckResponse.SERVING
        wait_until(lambda: health() == serving, "the server does not serve")
        cluster.worker()
        cluster.finish()
