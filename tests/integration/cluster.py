"""Clusters of real processes for tests: start, kill, freeze, wait, read what they said."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

# Long enough for a loaded machine and a sanitizer; only what hangs takes as long.
TIMEOUT_S = 40
POLL_S = 0.01

COORDINATOR = os.path.abspath("coordinator/coordinator")
PS_SERVER = os.path.abspath("ps_server/ps_server")
WORKER = os.path.abspath("worker/worker")
TANDEM = os.path.abspath("cli/tandem")


def wait_until(condition, what, timeout_s=TIMEOUT_S):
    """Returns the first true value of condition()."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"after {timeout_s} s: {what() if callable(what) else what}")
        time.sleep(POLL_S)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def exists(pid):
    """Whether the process runs: a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as out:
            return [int(child) for child in out.read().split()]
    except OSError:
        return []


class Process:
    """One process; its output goes to files in `folder`."""

    def __init__(self, name, argv, folder, environment=None):
        self.name = name
        self.files = {stream: os.path.join(folder, f"{name}.{stream}") for stream in ("out", "err")}
        variables = dict(os.environ, **(environment or {}))
        if "TSAN_OPTIONS" in variables:
            # The executables leave some of their threads to the kernel when they end.
            variables["TSAN_OPTIONS"] += ":report_thread_leaks=0"
        with open(self.files["out"], "wb") as out, open(self.files["err"], "wb") as err:
            self.popen = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                          env=variables)
        self.pid = self.popen.pid
        self.killed = False

    def text(self, stream="err"):
        with open(self.files[stream], encoding="utf-8", errors="replace", newline="") as file:
            return file.read()

    def said(self):
        """All output, for messages of assertions."""
        return f"--- {self.name}, status {self.popen.poll()}\n{self.text('out')}{self.text()}"

    def wait_for(self, pattern, stream="err", timeout_s=TIMEOUT_S):
        """Waits for output that matches; the match."""
        def look():
            found = re.search(pattern, self.text(stream))
            if not found and self.popen.poll() is not None:
                found = re.search(pattern, self.text(stream))
                if not found:
                    raise AssertionError(f"ended without saying {pattern!r}\n{self.said()}")
            return found
        return wait_until(look, lambda: f"no {pattern!r}\n{self.said()}", timeout_s)

    def address(self):
        return self.wait_for(r"^listening on (\S+)\n", "out").group(1)

    def wait(self, timeout_s=TIMEOUT_S):
        """Its exit status; -N for signal N."""
        try:
            return self.popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still runs after {timeout_s} s\n{self.said()}") from None

    def runs(self):
        return self.popen.poll() is None

    def send(self, number):
        self.popen.send_signal(number)

    def kill(self):
        self.killed = True
        self.popen.kill()
        self.popen.wait()

    def freeze(self):
        """Returns once it stands still."""
        self.send(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def thaw(self):
        self.send(signal.SIGCONT)


class Cluster:
    """A coordinator, and the servers and workers that are added. Ends with the test."""

    def __init__(self, test, job, servers=1, start=True, port=None, **flags):
        """`flags` are the coordinator's; set= may be a list."""
        self.test = test
        self.shards = servers
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.processes = []
        self.summary_file = os.path.join(self.folder, "summary.json")
        self.port = port or (0 if start else free_port())
        self.argv = [COORDINATOR, f"--job={job}", f"--listen=127.0.0.1:{self.port}",
                     f"--servers={servers}", f"--summary={self.summary_file}"]
        for name, value in flags.items():
            for one in value if isinstance(value, list) else [value]:
                self.argv.append(f"--{name}={one}")
        self.coordinator = None
        test.addCleanup(self._end)
        self.address = f"127.0.0.1:{self.port}"
        if start:
            self.start_coordinator()

    def _end(self):
        for process in self.processes:
            if process.runs():
                process.kill()
        shutil.rmtree(self.folder)

    def _start(self, kind, argv, environment=None):
        number = sum(process.name.startswith(kind) for process in self.processes) + 1
        process = Process(f"{kind}{number}", argv, self.folder, environment)
        self.processes.append(process)
        return process

    def start_coordinator(self):
        self.coordinator = self._start("coordinator", self.argv)
        self.address = self.coordinator.address()

    def server(self, *flags):
        return self._start("server", [PS_SERVER, f"--coordinator={self.address}", *flags])

    def worker(self, *flags):
        return self._start("worker", [WORKER, f"--coordinator={self.address}", "--threads=1",
                                      *flags])

    def said(self):
        return "".join(process.said() for process in self.processes)

    def wait_for_step(self, server, step, past=0):
        """Waits until `server` has applied more than `past` and at least `step` updates to a shard. The count."""
        import protos  # Not every test needs the wire.

        def look():
            if not self.coordinator.runs():
                raise AssertionError(f"the job ended before step {step}\n{self.said()}")
            held = protos.holdings(server.address(), self.shards)
            version = max((one.version for one in held.values()), default=0)
            return version >= max(step, past + 1) and version
        return wait_until(look, lambda: f"step {step} is not reached\n{self.said()}")

    def finish(self, status=0):
        """Waits for the job to end with `status`, and for every process to end by itself. The summary."""
        found = self.coordinator.wait()
        self.test.assertEqual(found, status, self.said())
        for process in self.processes:
            process.wait(20)
            if not process.killed and status == 0:
                self.test.assertEqual(process.popen.returncode, 0, self.said())
        with open(self.summary_file, encoding="utf-8") as file:
            return json.load(file)


class ClusterTest(unittest.TestCase):
    """A test with a folder of its own."""

    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.folder)

    def run_job(self, job, servers=1, workers=1, **flags):
        """An undisturbed run. The summary."""
        cluster = Cluster(self, job, servers, min_workers=workers, **flags)
        for _ in range(servers):
            cluster.server()
        for _ in range(workers):
            cluster.worker()
        return cluster.finish()

    def tandem(self, *arguments, environment=None):
        """`tandem` with these arguments, ended with the test."""
        process = Process(f"tandem{len(os.listdir(self.folder))}", [TANDEM, *arguments], self.folder,
                          environment)
        self.addCleanup(lambda: process.runs() and process.kill())
        return process
