#!/usr/bin/env python3
"""A summary that misses a failure would pass everything: each way to fail is tried."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

CASES = {
    "good": "<testcase name='a'/><testcase name='b'/>",
    "bad": "<testcase name='a'/><testcase name='b'><failure/></testcase>",
    "skipping": "<testcase name='a'/><testcase name='b'><skipped/></testcase>",
}


class SummaryTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_file(self, name, tests):
        """Events of a run of `tests`: (label, status or None for no result, key of CASES or None)."""
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as out:
            for label, status, cases in tests:
                configured = {"id": {"targetConfigured": {"label": label}},
                              "configured": {"testSize": "SMALL"}}
                out.write(json.dumps(configured) + "\n")
                if status is None:
                    continue
                result = {"status": status, "testActionOutput": []}
                if cases:
                    xml = os.path.join(self.folder.name, f"{name}-{cases}.xml")
                    with open(xml, "w", encoding="utf-8") as xml_out:
                        xml_out.write(f"<testsuites>{CASES[cases]}</testsuites>")
                    result["testActionOutput"].append({"name": "test.xml", "uri": "file://" + xml})
                event = {"id": {"testResult": {"label": label, "run": 1}}, "testResult": result}
                out.write(json.dumps(event) + "\n")
        return path

    def summary(self, *arguments):
        """(exit status, lines printed)"""
        command = [sys.executable, "tools/test_summary.py", *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False, encoding="utf-8")
        return done.returncode, done.stdout.splitlines()

    def test_adds_up_checks_and_runs(self):
        one = self.run_file("one", [("//:a", "PASSED", "good")])
        two = self.run_file("two", [("//:a", "PASSED", "good"), ("//:b", "FLAKY", "good")])
        self.assertEqual(
            self.summary("--check", "format", "0", "--run", "one", "0", one, "--run", "two", "0", two),
            (0, ["7 passed, 0 failed"]))

    def test_skipped_cases_do_not_change_the_last_line(self):
        run = self.run_file("run", [("//:a", "PASSED", "skipping")])
        self.assertEqual(self.summary("--run", "run", "0", run),
                         (0, ["1 skipped", "1 passed, 0 failed"]))

    def test_names_what_failed(self):
        run = self.run_file("run", [("//:a", "FAILED", "bad"), ("//:b", "TIMEOUT", None),
                                    ("//:c", "FAILED", "good"), ("//:d", None, None)])
        self.assertEqual(
            self.summary("--check", "format", "1", "--run", "run", "3", run),
            (1, ["FAILED format", "NO RESULT run //:d", "FAILED run //:a .b", "TIMEOUT run //:b",
                 "FAILED run //:c", "3 passed, 5 failed"]))

    def test_a_run_that_broke_off_or_tested_nothing_fails(self):
        run = self.run_file("run", [("//:a", "PASSED", "good")])
        empty = self.run_file("empty", [])
        self.assertEqual(self.summary("--run", "run", "1", run),
                         (1, ["FAILED run: bazel's exit status is 1", "2 passed, 1 failed"]))
        self.assertEqual(self.summary("--run", "empty", "4", empty)[0], 1)
        self.assertEqual(self.summary("--run", "empty", "0", empty)[0], 1)
        self.assertEqual(self.summary("--run", "gone", "1", "/nonexistent")[0], 1)


if __name__ == "__main__":
    unittest.main()
