#!/usr/bin/env python3
"""compile.py FOLDER TARGET JOBS LOG: lets ninja build TARGET in FOLDER, and tells in one line how far it is.

Ninja goes on where it stopped, whatever stopped it: it takes nothing for finished that it has not noted
as finished.
"""

import ctypes
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time

# Several of V8's files compiled as one (cluster_files.py), and what that costs in other steps of the build.
CLUSTER = re.compile(r"-cluster-\d+\.o\b")
CLUSTER_WEIGHT = 40

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def weight(line):
    return CLUSTER_WEIGHT if CLUSTER.search(line) else 1


def follow_parent():
    """Has this process ended when its parent ends, even if that is killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


class Build:
    def __init__(self, folder, target, jobs, log):
        self.ninja, self.target, self.jobs = ["ninja", "-C", folder], target, jobs
        self.log = open(log, "a")
        self.process = None
        self.ended = threading.Event()

    def weigh(self, *arguments):
        listed = subprocess.run([*self.ninja, *arguments, self.target], check=True, text=True, stdout=subprocess.PIPE)
        return sum(weight(line) for line in listed.stdout.splitlines() if not line.startswith("ninja: "))

    def run(self):
        self.total = self.weigh("-t", "commands")
        self.left = self.left_at_start = self.weigh("-n")
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [*self.ninja, "-j", self.jobs, self.target],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            env={**os.environ, "NINJA_STATUS": "[%f/%t] "}, preexec_fn=follow_parent,
            # A compiler that outlives a killed ninja keeps the lock that build.sh took.
            close_fds=False,
        )
        show = threading.Thread(target=self.show)
        show.start()
        for line in self.process.stdout:
            self.log.write(line)
            self.log.flush()
            if re.match(r"\[\d+/\d+\] ", line):
                self.left -= weight(line)
        self.ended.set()
        show.join()
        status = self.process.wait()
        self.note_costs()
        return status

    def note_costs(self):
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        minutes = (time.monotonic() - self.started) / 60, (used.ru_utime + used.ru_stime) / 60
        self.log.write("%s: %.1f minutes, %.1f of CPU; %d MB at most\n" % (self.target, *minutes, used.ru_maxrss // 1024))
        self.log.flush()

    def show(self):
        """A line that is written over on a terminal, and one a minute elsewhere."""
        terminal = sys.stderr.isatty()
        ended = False
        while not ended:
            ended = self.ended.wait(1 if terminal else 60)
            line = "tenon: %s %3d %%, %s" % (self.target, 100 * (self.total - self.left) // self.total, self.time_left())
            print("\r\033[K" + line if terminal else line, end="" if terminal and not ended else "\n", file=sys.stderr, flush=True)

    def time_left(self):
        spent, done = time.monotonic() - self.started, self.left_at_start - self.left
        if self.left <= 0:
            return "done"
        if spent < 60 or done <= 0:
            return "time left: not known yet"
        return "about %d min left" % max(1, round(spent / done * self.left / 60))

    def stop(self):
        if self.process:
            # It takes half-written files away.
            self.process.terminate()
            self.process.wait()
            self.note_costs()


class Stopped(Exception):
    pass


def stop(number, _frame):
    # Once is enough: the terminal tells all of us, and so does a parent that ends.
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise Stopped(number)


def main():
    follow_parent()
    build = Build(*sys.argv[1:])
    for number in SIGNALS:
        signal.signal(number, stop)
    try:
        status = build.run()
    except Stopped as stopped:
        build.stop()
        status = 128 + stopped.args[0]
    # Not sys.exit, which would wait for the other thread.
    os._exit(status)


if __name__ == "__main__":
    main()
