"""Disks: no room for a checkpoint, a disk that fills up while a run goes on, limits on files, and things in the way."""

import os
import pathlib
import resource
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import ProgramTest, finish, rows, run, start, wait_for  # noqa: E402
from soak import checkpoints, first_difference, newest_update, tensor_files  # noqa: E402


def fill(disk, leave=0):
    """Fills a disk, some bytes excepted."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    with open(disk / "rest", "wb", buffering=0) as rest:
        try:
            for _ in range(max(0, free - leave) // 4096):
                rest.write(bytes(4096))
        except OSError:
            pass


def failures(folder):
    return [row for row in rows(folder) if row.get("event") == "checkpoint failed"]


def is_stopped(pid):
    """Whether all its threads have stopped: each of them gets to know of the signal in its own time."""
    states = [
        path.read_text().rpartition(")")[2].split()[0] for path in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")
    ]
    return all(state in "Tt" for state in states)


class DiskTest(ProgramTest):
    # A checkpoint takes 1.3 MB, a model 0.4 MB.
    flags = ("--hidden", 4000, "--save-interval", 2, "--eval-interval", 0, "--log-interval", 0, "--dropout", 0.1)

    def mount(self, options, name="disk"):
        target = self.folder / name
        target.mkdir(parents=True, exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", target]
        if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
            self.skipTest("mounting a small disk needs root")
        self.addCleanup(subprocess.run, ["umount", "-l", target], check=True)
        return target

    def train(self, folder, *arguments, **options):
        return run(*self.small(*self.flags, "--max-steps", 16, "-o", folder, *arguments), **options)

    def started(self, folder, *arguments):
        """A long run into `folder` that has saved."""
        process = start(*self.small(*self.flags, "--max-steps", 1_000_000, "-o", folder, *arguments))
        self.addCleanup(process.kill)
        self.wait(process, lambda: newest_update(folder) >= 4)
        return process

    def wait(self, process, condition):
        def holds():
            self.assertIsNone(process.poll(), "the run ended")
            return condition()

        wait_for(holds)

    def check_goes_on_as_ever(self, folder, *arguments):
        """Taken up where it stands, the run does its next updates like one that was never in trouble."""
        update = newest_update(folder)
        result = run(
            *self.small(*self.flags, "--max-steps", 1_000_000, "-o", folder),
            *("--resume", "auto", "--stop-after", 6, *map(str, arguments)),
        )
        self.done(result)
        whole = self.folder / "whole"
        self.done(run(*self.small(*self.flags, "--max-steps", 1_000_000, "--stop-after", update + 6, name="whole")))
        self.assertEqual(first_difference(folder, whole), "")


class Room(DiskTest):
    def test_f10_no_room_for_one_checkpoint_is_said_before_update_1(self):
        disk = self.mount("size=1m")
        self.check_refusal(self.train(disk / "run"), 4, str(disk / "run"), "1.8 MB", "1.0 MB are free", "--output-dir")
        self.assertFalse((disk / "run").exists())

    def test_room_for_one_but_not_for_all_is_a_warning(self):
        disk = self.mount("size=6m")
        result = self.train(disk / "run", "--keep-checkpoints", 0)
        self.assertRegex(result.stdout, "warning: .*--keep-checkpoints")
        self.assertEqual(result.returncode, 4)
        self.assertNotEqual(checkpoints(disk / "run"), [])

    def test_f2_a_disk_that_fills_up_stops_the_run(self):
        disk = self.mount("size=20m")
        process = self.started(disk / "run")
        fill(disk, leave=600_000)
        result = finish(process)
        self.check_refusal(result, 4, str(disk / "run"))  # the row that finds no place may come before the checkpoint
        before = tensor_files(disk / "run")
        again = run(*self.small(*self.flags, "--max-steps", 1_000_000, "-o", disk / "run", "--resume", "auto"))
        self.check_refusal(again, 4, str(disk / "run"), "free")
        self.assertEqual(tensor_files(disk / "run"), before)
        (disk / "rest").unlink()
        self.check_goes_on_as_ever(disk / "run")

    def test_f2_filled_to_the_last_byte(self):
        disk = self.mount("size=20m")
        process = self.started(disk / "run")
        fill(disk)
        result = finish(process)
        self.check_refusal(result, 4, str(disk / "run"))
        rows(disk / "run")  # whole lines only
        (disk / "rest").unlink()
        self.check_goes_on_as_ever(disk / "run")


class InTheWay(DiskTest):
    def test_f2_a_limit_on_the_size_of_files_kills_nobody(self):
        for limit in (0, 1000, 100_000, 400_000, 600_000):  # the model has 432 kB, its moments twice that
            with self.subTest(limit=limit):
                folder = self.folder / f"run{limit}"

                def set_limit(limit=limit):
                    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

                result = self.train(folder, preexec_fn=set_limit)
                self.check_refusal(result, 4, str(folder), "File too large")
                if folder.exists():
                    self.assertEqual(checkpoints(folder), [])
                    left = [path.name for path in folder.rglob("*") if ".tmp-" in path.name]
                    self.assertEqual(left, [])

    def test_a_folder_of_checkpoints_that_becomes_read_only(self):
        process = self.started(self.folder / "run")
        checkpoints_folder = self.folder / "run/checkpoints"
        self.mount("ro,size=1m", name="run/checkpoints")  # over what is there
        self.check_refusal(finish(process), 4, str(checkpoints_folder))
        subprocess.run(["umount", checkpoints_folder], check=True)
        self.addCleanup(subprocess.run, ["mount", "-t", "tmpfs", "tmpfs", checkpoints_folder], check=True)
        self.check_goes_on_as_ever(self.folder / "run")

    def test_a_file_in_the_way_of_the_checkpoints(self):
        for policy in ("stop", "continue"):
            with self.subTest(policy):
                folder = self.folder / policy
                process = self.started(folder, "--on-save-error", policy)
                process.send_signal(signal.SIGSTOP)  # else it may make the folder anew in between
                wait_for(lambda process=process: is_stopped(process.pid))
                (folder / "checkpoints").rename(folder / "aside")
                (folder / "checkpoints").write_text("in the way")
                process.send_signal(signal.SIGCONT)
                if policy == "continue":
                    self.wait(process, lambda folder=folder: failures(folder))
                    process.terminate()
                self.check_refusal(finish(process), 4, str(folder / "checkpoints"))
                (folder / "checkpoints").unlink()
                (folder / "aside").rename(folder / "checkpoints")
        self.check_goes_on_as_ever(self.folder / "stop")


if __name__ == "__main__":
    unittest.main()
