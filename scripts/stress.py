"""stress.py RUNS LOAD REPORT COMMAND...: runs the tests again and again on a busy machine.

LOAD processes compute all the time while COMMAND, a `cargo nextest run` that writes its JUnit report to REPORT, runs
RUNS times. A line for each run says how it ended, with the load average of the last five minutes. If a test failed,
what the run printed is kept beside the report. The end is a table of the tests that failed and how often. Exits with 1
if any did.
"""

import os
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter


def busy(count):
    """Processes that take as much of the processors as they get. They end when this one does, however that is."""
    code = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    for _ in range(10**6): pass"
    return [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count)]


def read(report):
    """How many tests ran, and the names of those that failed."""
    ran, failed = 0, []
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            ran += 1
            if case.find("failure") is not None or case.find("error") is not None:
                failed.append(f"{suite.get('name')} {case.get('name')}")
    return ran, failed


def show_time(seconds):
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


def show_rates(failures, runs):
    """One line for each test that failed, the worst first."""
    width = max(map(len, failures))
    lines = [f"{'test':<{width}}  failed  rate"]
    for test, count in failures.most_common():
        lines.append(f"{test:<{width}}  {count:>6}  {count / runs:>4.0%}")
    return "\n".join(lines)


def run_once(number, report, command, printed):
    report.unlink(missing_ok=True)
    with printed.open("w") as output:
        status = subprocess.call(command, stdout=output, stderr=subprocess.STDOUT)
    if not report.exists():
        sys.exit(f"run {number} has no report; it ended with {status}, see {printed}")
    return read(report)


def main(runs, load, report, command):
    runs, load, report = int(runs), int(load), pathlib.Path(report)
    failures, began = Counter(), time.monotonic()
    burners = busy(load)
    try:
        for number in range(1, runs + 1):
            start = time.monotonic()
            printed = report.with_name(f"run-{number}.log")
            ran, failed = run_once(number, report, command, printed)
            failures.update(failed)
            if failed:
                where = f"; {printed}"
            else:
                printed.unlink()
                where = ""
            took, average = show_time(time.monotonic() - start), os.getloadavg()[1]
            passed = ran - len(failed)
            print(f"run {number}/{runs}: {passed} passed, {len(failed)} failed, {took}, load {average:.0f}{where}", flush=True)
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    print(f"{runs} runs with {load} busy processes: {show_time(time.monotonic() - began)}")
    if not failures:
        print("no test failed")
        return 0
    print(show_rates(failures, runs))
    return 1


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
