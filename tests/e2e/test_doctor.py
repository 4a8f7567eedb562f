"""gradstep doctor on a real run: all well, then one trouble after the other, and beside a run that goes on."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import torch  # noqa: E402
from program import PROGRAM, ProgramTest, finish, run, start, wait_for  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

# Checks of the machine, which may be busy, small or odd while the tests run.
MACHINE = {"processor", "kernels", "devices", "memory", "threads", "load", "limits", "clock", "disk"}
NOBODY = 65534


class Doctor(ProgramTest):
    def setUp(self):
        """A run of 20 updates with four checkpoints, from a folder that it names from where it was started."""
        super().setUp()
        self.run_folder = self.folder / "run"
        flags = ("--max-steps", 20, "--save-interval", 5, "--keep-checkpoints", 0, "--eval-interval", 5)
        self.arguments = self.small(*flags)
        self.arguments[self.arguments.index("--data-dir") + 1] = "data"
        self.done(run(*self.arguments, cwd=self.folder))

    def look(self, code, *arguments, **options):
        """The findings on the run that are not well, by name; the exit code must be `code` unless the machine is odd."""
        result = run("doctor", self.run_folder, "--json", *arguments, **options)
        self.assertEqual(result.stderr, "")
        found = json.loads(result.stdout)
        for each in found["findings"]:
            self.assertIn(each["grade"], ("ok", "warning", "problem"))
        odd = [each for each in found["findings"] if each["name"] in MACHINE and each["grade"] != "ok"]
        if not odd:
            self.assertEqual((result.returncode, found["exit_code"]), (code, code), result.stdout)
            self.assertEqual(found["verdict"] == "all is well", code == 0)
        elif code > 1 and all(each["grade"] == "warning" for each in odd):
            self.assertEqual(result.returncode, code, result.stdout)
        else:
            self.assertNotEqual(result.returncode, 0, result.stdout)
        self.all = {each["name"]: each["text"] for each in found["findings"]}
        return {
            each["name"]: each["text"]
            for each in found["findings"]
            if each["grade"] != "ok" and each["name"] not in MACHINE
        }

    def check_one(self, code, name, *words):
        found = self.look(code)
        self.assertEqual(list(found), [name], found)
        for word in words:
            self.assertIn(word, found[name])

    def files(self):
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in self.run_folder.rglob("*")}

    def test_all_is_well_and_nothing_changes(self):
        before = self.files(), self.run_folder.stat().st_mtime_ns, sorted(os.listdir(self.folder))
        self.assertEqual(self.look(0), {})
        self.assertEqual((self.files(), self.run_folder.stat().st_mtime_ns, sorted(os.listdir(self.folder))), before)
        self.assertIn("4 checkpoints are whole", self.all["checkpoints"])
        self.assertIn("60 training samples, as the run was trained on", self.all["data"])
        for path in (self.run_folder / "checkpoints", self.run_folder / "checkpoints/step-00000020"):
            lines = run("doctor", path).stdout.splitlines()
            self.assertEqual({line.split()[0] for line in lines[:-1]} - {"ok", "warning", "problem"}, set())
            self.assertEqual({line.index(line.split()[1]) for line in lines[:-1]}, {9})  # aligned
            self.assertRegex(lines[-1], r"^(all is well|\d+ problems?, \d+ warnings?)$")
        # From another folder the data is where the run says.
        self.assertEqual(self.look(0, cwd="/"), {})

    def test_the_machine_alone(self):
        result = run("doctor", cwd=self.folder)
        self.assertEqual(result.stderr, "")
        self.assertEqual({line.split()[1] for line in result.stdout.splitlines()[:-1]}, MACHINE)
        self.assertEqual(sorted(os.listdir(self.folder)), ["data", "run"])
        result = run("doctor", env={"OMP_NUM_THREADS": "1000"}, cwd=self.folder)
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"\nwarning  threads +.*OMP_NUM_THREADS is 1000.*set it to \d+\n")

    def test_what_is_no_run(self):
        self.check_refusal(run("doctor", self.folder / "absent"), 4, "absent: no such folder; give")
        self.check_refusal(run("doctor", self.folder / "data"), 4, "no run in it; give")
        self.check_refusal(run("doctor", self.run_folder / "config.toml"), 4, "is a file; give")
        self.check_refusal(run("doctor", ""), 2, "RUN is empty")
        self.check_refusal(run("doctor", "a", "b"), 2, "unexpected argument 'b'")

    def test_a_flipped_byte_in_a_checkpoint(self):
        path = self.run_folder / "checkpoints/step-00000010/model.safetensors"
        whole = bytearray(path.read_bytes())
        whole[-1] ^= 1
        path.write_bytes(whole)
        self.check_one(4, "checkpoints", "step-00000010/model.safetensors", "hash")
        lines = run("doctor", self.run_folder).stdout.splitlines()
        self.assertEqual(sum(line.startswith("problem  checkpoints  ") for line in lines), 1)
        self.assertTrue(any(line.startswith("ok       checkpoints  3 checkpoints are whole") for line in lines))

    def test_weights_that_are_no_numbers(self):
        path = self.run_folder / "best.safetensors"
        tensors = load_file(path)
        with safe_open(path, "pt") as file:
            metadata = file.metadata()
        for value in (float("nan"), float("inf")):
            tensors["fc1.bias"][0] = value
            save_file(tensors, path, metadata)
            self.check_one(3, "model", "best.safetensors: tensor fc1.bias is not finite")
        tensors["fc1.bias"] = torch.zeros_like(tensors["fc1.bias"])
        save_file(tensors, path, metadata)
        self.assertEqual(self.look(0), {})

    def test_rows(self):
        path = self.run_folder / "metrics.jsonl"
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        found = self.look(4)
        self.assertIn("step-00000020 knows of", found["rows"])
        path.write_bytes(whole + b'{"window": 21, "upd')
        self.assertEqual(self.look(0), {})  # the end row is before it
        self.assertIn("the last one is cut", self.all["rows"])
        path.write_bytes(whole.replace(b"{", b"\0", 1))
        self.check_one(4, "rows", "line 1 is no row")
        path.unlink()
        self.check_one(4, "rows", "metrics.jsonl: missing")
        os.mkfifo(path)
        self.check_one(4, "rows", "no plain file")  # and does not hang

    def test_data_that_moved_or_changed(self):
        data = self.folder / "data"
        data.rename(self.folder / "moved")
        self.check_one(5, "data", str(data), "is not there", "--data-dir")
        (self.folder / "moved").rename(data)
        path = data / "train-labels-idx1-ubyte"
        whole = bytearray(path.read_bytes())
        whole[-1] ^= 1
        path.write_bytes(whole)
        self.check_one(5, "data", "is not what the run was trained on")
        path.write_bytes(whole[:-1])
        self.check_one(5, "data", "train-labels")

    def test_a_run_that_goes_on_is_not_disturbed(self):
        flags = ("--epochs", 100000, "--save-interval", 20, "--log-interval", 0)
        process = start(*self.small(*flags, name="live"), cwd=self.folder)
        self.addCleanup(process.kill)
        self.run_folder = self.folder / "live"
        wait_for(lambda: (self.run_folder / "checkpoints/step-00000040").exists() or process.poll() is not None)
        for _ in range(4):  # old checkpoints vanish meanwhile
            self.assertEqual(self.look(0), {})
            self.assertIn(f"held by pid {process.pid}", self.all["lock"])
            self.assertIn("goes on", self.all["end"])
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGKILL)
        process.wait()
        finish(process)
        found = self.look(1)
        self.assertEqual(list(found), ["end"])
        self.assertIn("killed", found["end"])
        self.assertIn(f"left over from pid {process.pid}", self.all["lock"])

    def test_a_start_beside_it_is_not_refused(self):
        (self.run_folder / ".gradstep.lock").write_text(f"pid 2147483647 on {os.uname().nodename}\n1-2\n")
        looks = [
            subprocess.Popen([PROGRAM, "doctor", str(self.run_folder)], stdout=subprocess.DEVNULL) for _ in range(3)
        ]
        for i in range(5):
            result = run(*self.arguments, "--resume", "auto", "--max-steps", 21 + i, "--accept-drift", cwd=self.folder)
            self.assertEqual(result.returncode, 0, result.stderr)
        for process in looks:
            process.wait()

    def test_a_failed_run(self):
        shutil.rmtree(self.run_folder)
        flags = ("--max-steps", 20, "--lr", 1e30, "--on-nonfinite", "stop", "--sched", "constant")
        self.assertEqual(run(*self.small(*flags), cwd=self.folder).returncode, 3)
        found = self.look(1)
        self.assertIn("the run failed at update", found["end"])

    @unittest.skipUnless(os.geteuid() == 0, "needs another user")
    def test_what_may_not_be_read_is_not_called_damaged(self):
        self.folder.chmod(0o755)
        path = self.run_folder / "checkpoints/step-00000020/state.json"
        path.chmod(0)
        (self.run_folder / "metrics.jsonl").chmod(0)

        def become_nobody():
            os.setgid(NOBODY)
            os.setuid(NOBODY)

        try:
            found = self.look(4, preexec_fn=become_nobody)
        except PermissionError:
            self.skipTest("the build is in a folder that others may not enter")
        self.assertIn("Permission denied", found["checkpoints"])
        self.assertIn("Permission denied", found["rows"])
        self.assertNotIn("damaged", str(found))


if __name__ == "__main__":
    unittest.main()
