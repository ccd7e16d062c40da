#!/usr/bin/python3
"""Runs unittest modules of this folder, named as arguments, and writes a test.xml in which each case
counts."""
import os
import sys
import time
import traceback
import unittest
import xml.etree.ElementTree as ET

sys.dont_write_bytecode = True
sys.path.insert(0, "tests/integration")


class Result(unittest.TextTestResult):
    """Remembers each case: (test, seconds, tag of its outcome or None, text)."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.cases = []
        self.began = 0.0

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def _add(self, test, tag, text):
        self.cases.append((test, time.monotonic() - self.began, tag, text))

    def addSuccess(self, test):
        super().addSuccess(test)
        self._add(test, None, "")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._add(test, "failure", "".join(traceback.format_exception(*err)))

    def addError(self, test, err):
        super().addError(test, err)
        self._add(test, "error", "".join(traceback.format_exception(*err)))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._add(test, "skipped", reason)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is None:
            self._add(subtest, None, "")
        else:
            self._add(subtest, "failure", "".join(traceback.format_exception(*err)))


def write_xml(cases, path):
    suite = ET.Element("testsuite", name="integration", tests=str(len(cases)))
    for test, seconds, tag, text in cases:
        suite_name, _, name = test.id().partition(".")
        case = ET.SubElement(suite, "testcase", classname=suite_name, name=name,
                             time=f"{seconds:.3f}")
        if tag is not None:
            # What a log may hold and XML may not.
            clean = "".join(c for c in text if c in "\n\t" or c >= " ")
            ET.SubElement(case, tag).text = clean
    root = ET.Element("testsuites")
    root.append(suite)
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def main():
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromNames(sys.argv[1:])
    if os.environ.get("TESTBRIDGE_TEST_ONLY"):  # bazel test --test_filter=PART
        wanted = os.environ["TESTBRIDGE_TEST_ONLY"]
        chosen = unittest.TestSuite()
        for module in suite:
            for group in module:
                chosen.addTests(test for test in group if wanted in test.id())
        suite = chosen
    runner = unittest.TextTestRunner(sys.stdout, resultclass=Result, verbosity=2)
    result = runner.run(suite)
    if os.environ.get("XML_OUTPUT_FILE"):
        write_xml(result.cases, os.environ["XML_OUTPUT_FILE"])
    return 0 if result.wasSuccessful() and result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
