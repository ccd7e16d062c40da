"""`tandem local`: one command, real processes, none of which is left behind."""
import json
import os
import re
import signal
import subprocess

import data
from cluster import TANDEM, ClusterTest, children, exists, wait_until


class TandemTest(ClusterTest):
    def setUp(self):
        super().setUp()
        self.job = data.picture_job(self.folder)

    def start(self, *flags, servers=1, workers=2, epochs=4000, started=None):
        """A cluster in the middle of a job of many seconds; the pids of its processes by kind."""
        tandem = self.tandem("local", f"--job={self.job}", f"--servers={servers}",
                             f"--workers={workers}", f"--set=training.epochs={epochs}",
                             "--lease_timeout_ms=1000", *flags)
        tandem.wait_for(r"step [1-9]\d* of")
        pids = {"coordinator": [], "ps_server": [], "worker": []}
        for pid in sorted(children(tandem.pid)):
            pids[os.path.basename(os.readlink(f"/proc/{pid}/exe"))].append(pid)
        self.assertEqual([len(p) for p in pids.values()], [1, started or servers, workers])
        return tandem, pids

    def check_gone(self, pids):
        for kind in pids.values():
            for pid in kind:
                wait_until(lambda p=pid: not exists(p), f"process {pid} is left behind", 10)

    def test_trains_and_sums_up(self):
        summary_file = os.path.join(self.folder, "summary.json")
        tandem = self.tandem("local", f"--job={self.job}", "--servers=2", "--workers=3",
                             "--set=seed=7", "--set=training.epochs=3", f"--summary={summary_file}")
        self.assertEqual(tandem.wait(), 0, tandem.said())
        with open(summary_file, encoding="utf-8") as file:
            summary = json.load(file)
        self.assertEqual((summary["status"], summary["steps"], summary["servers"]), ("ok", 48, 2))
        alone = self.run_job(self.job, set=["seed=7", "training.epochs=3"])
        self.assertEqual(summary["params_digest"], alone["params_digest"])
        self.assertIn(summary["params_digest"], tandem.text("out"))
        self.assertNotIn("listening on", tandem.text("out") + tandem.text())

    def test_job_that_was_lost_goes_on_and_when_it_has_ended_is_not_run_again(self):
        state_dir = os.path.join(self.folder, "state")
        flags = ["--set=training.epochs=200", "--set=checkpoint.every_steps=100", "--lease_timeout_ms=3000",
                 f"--job={self.job}", f"--state_dir={state_dir}"]
        # The environment's is another one, which the servers must not use.
        other = {"TANDEM_STATE_DIR": os.path.join(self.folder, "other")}
        lost = self.tandem("local", *flags, "--servers=2", environment=other)
        wait_until(lambda: os.path.exists(f"{state_dir}/checkpoints/step-000000000200/manifest.json"),
                   lost.said)
        lost.kill()
        wait_until(lambda: not subprocess.run(["pgrep", "-f", state_dir], check=False,
                                              stdout=subprocess.DEVNULL).returncode == 0, "left behind")
        summaries = []
        for servers in (3, 2):
            summary = os.path.join(self.folder, f"{servers}.json")
            again = self.tandem("local", *flags, f"--servers={servers}", f"--summary={summary}",
                                environment=other)
            self.assertEqual(again.wait(), 0, again.said())
            self.assertNotIn("cannot go on", again.text())
            with open(summary, encoding="utf-8") as file:
                summaries.append(json.load(file))
        self.assertGreaterEqual(summaries[0]["resumed_at"], 200)
        self.assertEqual(summaries[0], summaries[1])
        self.assertIn("has ended; nothing is left to do", again.text())
        self.assertFalse(os.path.exists(other["TANDEM_STATE_DIR"]))
        undisturbed = self.run_job(self.job, set=["training.epochs=200"])
        self.assertEqual(summaries[0]["params_digest"], undisturbed["params_digest"])

    def test_spare_server_takes_the_place_of_a_killed_one(self):
        tandem, pids = self.start("--spares=1", servers=2, epochs=600, started=3)
        os.kill(pids["ps_server"][0], signal.SIGKILL)
        self.assertEqual(tandem.wait(), 0, tandem.said())
        self.check_gone(pids)

    def test_job_from_standard_input(self):
        with open(self.job, encoding="utf-8") as job:
            done = subprocess.run([TANDEM, "local", "--job=/dev/stdin"], stdin=job, timeout=40,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_addresses_in_the_environment_are_not_the_children_s(self):
        tandem = self.tandem("local", f"--job={self.job}", "--servers=2", "--workers=2", environment={
            "TANDEM_LISTEN": "127.0.0.1:1", "TANDEM_ADVERTISE": "127.0.0.1:1",
            "TANDEM_COORDINATOR": "127.0.0.1:1"})
        self.assertEqual(tandem.wait(), 0, tandem.said())

    def test_killed_leaves_no_process(self):
        tandem, pids = self.start()
        tandem.kill()
        self.check_gone(pids)

    def test_interrupted_alone(self):
        tandem, pids = self.start()
        tandem.send(signal.SIGINT)
        self.assertEqual(tandem.wait(10), 1, tandem.said())
        self.assertNotIn("(pid", tandem.text())  # Nobody died.
        self.check_gone(pids)

    def test_interrupted_as_a_group(self):
        """Ctrl-C: every process gets the signal."""
        tandem, pids = self.start()
        for pid in [tandem.pid, *(pid for kind in pids.values() for pid in kind)]:
            os.kill(pid, signal.SIGINT)
        self.assertEqual(tandem.wait(10), 1, tandem.said())
        self.check_gone(pids)

    def test_terminated_before_anything_listens(self):
        tandem = self.tandem("local", f"--job={self.job}", "--set=training.epochs=4000")
        wait_until(lambda: children(tandem.pid), "no child")
        pids = {"all": children(tandem.pid)}
        tandem.send(signal.SIGTERM)
        self.assertEqual(tandem.wait(10), 1, tandem.said())
        self.check_gone(pids)

    def test_asked_twice_does_not_wait(self):
        tandem, pids = self.start()
        os.kill(pids["coordinator"][0], signal.SIGSTOP)
        tandem.send(signal.SIGTERM)
        wait_until(lambda: not signal_pending(tandem.pid), "the signal is not taken")
        tandem.send(signal.SIGTERM)
        self.assertEqual(tandem.wait(3), 1, tandem.said())
        self.check_gone(pids)

    def test_killed_worker_is_named_and_the_others_go_on(self):
        tandem, pids = self.start(epochs=800)
        victim = pids["worker"][1]
        os.kill(victim, signal.SIGKILL)
        self.assertEqual(tandem.wait(), 0, tandem.said())
        self.assertEqual(re.findall(r"tandem: (.*)", tandem.text()),
                         [f"worker 2 (pid {victim}) was killed by signal 9"])

    def test_without_any_worker_the_job_ends(self):
        tandem, pids = self.start()
        for pid in pids["worker"]:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(tandem.wait(20), 1, tandem.said())
        self.assertIn("cannot go on without any of its workers", tandem.text())
        self.check_gone(pids)

    def test_without_a_server_the_job_ends(self):
        tandem, pids = self.start(servers=2)
        os.kill(pids["ps_server"][0], signal.SIGKILL)
        self.assertEqual(tandem.wait(20), 1, tandem.said())
        self.assertRegex(tandem.text(), r"server 1 \(pid \d+\) was killed by signal 9\n")
        self.assertIn("cannot go on without server 1", tandem.text())
        self.check_gone(pids)

    def test_killed_coordinator_may_be_cured_by_a_restart(self):
        tandem, pids = self.start()
        os.kill(pids["coordinator"][0], signal.SIGKILL)
        self.assertEqual(tandem.wait(20), 200, tandem.said())
        self.assertIn("the coordinator was killed by signal 9", tandem.text())
        self.check_gone(pids)

    def test_frozen_worker_does_not_outlive_the_job(self):
        tandem, pids = self.start(epochs=800)
        os.kill(pids["worker"][0], signal.SIGSTOP)
        self.assertEqual(tandem.wait(), 0, tandem.said())
        self.check_gone(pids)

    def test_failed_job_has_the_coordinator_s_status(self):
        tandem = self.tandem("local", f"--job={self.job}", "--set=optimizer.sgd.learning_rate=1e30")
        self.assertEqual(tandem.wait(20), 1, tandem.said())
        self.assertRegex(tandem.text(), r"failed: .*step \d+")


def signal_pending(pid):
    """Whether a SIGTERM waits to be read."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
        mask = re.search(r"^ShdPnd:\s*(\w+)", status.read(), re.MULTILINE).group(1)
    return int(mask, 16) >> (signal.SIGTERM - 1) & 1
