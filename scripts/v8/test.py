#!/usr/bin/env python3
"""What can be checked in a second, without building V8."""

import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = [f"../v8/src/api/{number}.cc" for number in range(7)] + [f"../v8/src/maglev/{number}.cc" for number in range(3)]


class ClusterFiles(unittest.TestCase):
    def run_it(self, *arguments, files=FILES):
        command = [sys.executable, os.path.join(HERE, "cluster_files.py"), *arguments, "--prefix", "base", "--cluster-size", "4"]
        command += ["--small-cluster-size", "2", "--small-cluster-dirs", "src/maglev", *files]
        return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout.split()

    def written(self, *arguments, files=FILES):
        """{cluster: what it includes}"""
        with tempfile.TemporaryDirectory() as folder:
            self.run_it("--generate", "--output-dir", folder, *arguments, files=files)
            found = {}
            for name in os.listdir(folder):
                with open(os.path.join(folder, name)) as cluster:
                    found[name] = re.findall('^#include "(.*)"$', cluster.read(), re.M)
            return found

    def test_every_file_is_in_one_cluster_and_heavy_ones_in_small_clusters(self):
        written = self.written()
        self.assertEqual(sorted(sum(written.values(), [])), FILES)
        self.assertEqual(sorted(map(len, written.values())), [1, 2, 3, 4])
        self.assertTrue(all(len(files) <= 2 for files in written.values() if "maglev" in files[0]))

    def test_files_that_do_not_get_along_with_others_are_alone(self):
        files = ["../v8/src/ast/ast.cc", "../v8/src/ast/prettyprinter.cc", "../v8/src/heap/heap.cc", "../v8/src/extensions/gc-extension.cc"]
        self.assertEqual(sorted(self.written(files=files).values()), [files[0::2], [files[1]], [files[3]]])

    def test_files_that_use_another_assembler_are_among_themselves(self):
        files = ["../v8/src/a.cc", "../v8/src/b-tsa.cc", "../v8/src/c.cc", "../v8/src/d-tsa.cc"]
        written = sorted(self.written(files=files).values())
        self.assertEqual(written, [files[0::2], files[1::2]])

    def test_what_is_written_is_what_was_announced(self):
        self.assertEqual(sorted(self.run_it("--compute-filenames")), sorted(self.written()))

    def test_includes_are_found_from_where_the_cluster_is(self):
        self.assertIn("../../../v8/src/api/0.cc", self.written("--include-prefix", "../../")["base-cluster-0.cc"])
        self.assertEqual(self.written("--strip-prefix", "gen/", files=["gen/a/x.cc"]), {"base-cluster-0.cc": ["a/x.cc"]})


@unittest.skipUnless(shutil.which("ninja"), "ninja is not installed")
class Compile(unittest.TestCase):
    """A build of three steps, one after the other; the second ends when the test says so."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        with open(os.path.join(self.folder, "build.ninja"), "w") as ninja:
            ninja.write("rule go\n  command = echo $out >> order && $wait && touch $out\n")
            ninja.write("build one: go\n  wait = true\n")
            # Or when the folder is gone, so that nothing is left of a test that failed.
            ninja.write("build two: go one\n  wait = until [ -e go -o ! -e build.ninja ]; do sleep 0.02; done\n")
            ninja.write("build all: go two\n  wait = true\n")

    def start(self, target="all"):
        command = [sys.executable, os.path.join(HERE, "compile.py"), self.folder, target, "2", os.path.join(self.folder, "log")]
        return subprocess.Popen(command, text=True, stderr=subprocess.PIPE)

    def order(self):
        try:
            with open(os.path.join(self.folder, "order")) as order:
                return order.read().split()
        except FileNotFoundError:
            return []

    def test_goes_on_after_each_kind_of_end(self):
        for number, code in (signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9):
            with self.subTest(number):
                before = self.order().count("two")
                build = self.start()
                while self.order().count("two") == before:
                    time.sleep(0.01)
                build.send_signal(number)
                # As when the whole group is told, and then the parent ends.
                build.send_signal(signal.SIGTERM)
                build.communicate(timeout=60)
                self.assertEqual(build.returncode, code)
        open(os.path.join(self.folder, "go"), "w").close()
        build = self.start()
        _, said = build.communicate()
        self.assertEqual(build.returncode, 0)
        self.assertEqual(self.order(), ["one", "two", "two", "two", "two", "all"])
        self.assertIn("100 %", said)

    def test_a_step_that_fails(self):
        with open(os.path.join(self.folder, "build.ninja"), "a") as ninja:
            ninja.write("build broken: go\n  wait = false\n")
        build = self.start("broken")
        build.communicate()
        self.assertNotEqual(build.returncode, 0)
        with open(os.path.join(self.folder, "log")) as log:
            self.assertIn("FAILED: broken", log.read())


@unittest.skipUnless(shutil.which("cargo") and shutil.which("apt-get") and platform.machine() == "x86_64", "not where V8 is built")
class Checks(unittest.TestCase):
    """What has to be there before anything is installed or built."""

    def refusal(self, **environment):
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "XDG_CACHE_HOME": cache, **environment}
            build = subprocess.run([os.path.join(HERE, "build.sh")], env=environment, text=True, stderr=subprocess.PIPE)
        self.assertEqual(build.returncode, 1)
        return build.stderr

    def test_too_little_memory(self):
        self.assertIn("needs 2500 MB of free memory for each job", self.refusal(JOBS="1000000"))

    def test_too_little_disk(self):
        with tempfile.TemporaryDirectory() as folder:
            df = os.path.join(folder, "df")
            with open(df, "w") as script:
                script.write("#!/bin/sh\necho disk 9 9 1000000 9 /\n")
            os.chmod(df, 0o755)
            said = self.refusal(PATH=folder + os.pathsep + os.environ["PATH"])
        self.assertIn("needs 2 GB of disk", said)
        self.assertIn("has 0 GB", said)


if __name__ == "__main__":
    unittest.main()
