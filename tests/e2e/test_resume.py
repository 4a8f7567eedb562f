"""Going on: with any end but divergence a run can be taken up again, and ends as if it had never been interrupted."""

import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import ProgramTest, rows, run, start, wait_for, write_idx  # noqa: E402
from soak import checkpoints, first_difference, numbers, tensor_files  # noqa: E402

EPOCH = 8  # windows of 8 samples in 60


class Resume(ProgramTest):
    def setUp(self):
        super().setUp()
        self.extra = ["--epochs", 5, "--dropout", 0.5, "--save-interval", 3, "--eval-interval", 4, "--ema", 0.9]
        self.done(self.train("whole"))
        self.whole = self.folder / "whole"

    def train(self, name, *arguments, timeout=120):
        return run(*self.small(*self.extra, *arguments, name=name), timeout=timeout)

    def check_equal(self, folder):
        self.assertEqual(first_difference(folder, self.whole), "")
        for name in ("model.safetensors", "best.safetensors", "model-ema.safetensors", "best-ema.safetensors"):
            self.assertEqual((folder / name).read_bytes(), (self.whole / name).read_bytes(), name)

    def test_c2_stopped_at_each_of_the_first_updates(self):
        for stop in range(1, 11):
            with self.subTest(stop=stop):
                name = f"stop{stop}"
                first = self.done(self.train(name, "--stop-after", stop, "--workers", stop % 3))
                self.assertIn(f"not finished: update {stop} of {5 * EPOCH} (--stop-after)", first.stdout)
                self.assertEqual(checkpoints(self.folder / name)[-1], f"step-{stop:08}")
                second = self.done(self.train(name, "--resume", "auto", "--workers", stop % 3))
                self.assertIn(f"step-{stop:08}", second.stdout)
                self.check_equal(self.folder / name)

    def test_rows_that_somebody_cut_are_missed(self):
        self.done(self.train("run", "--stop-after", 7))
        metrics = self.folder / "run/metrics.jsonl"
        metrics.write_text("".join(metrics.read_text().splitlines(keepends=True)[:2]))
        text = f"metrics.jsonl has {metrics.stat().st_size} of the "
        result = self.done(self.train("run", "--resume", "auto", "--stop-after", 1))
        self.assertNotIn("warning", self.done(self.train("run", "--resume", "auto", "--stop-after", 1)).stdout)
        self.assertIn(f"warning: {text}", result.stdout)
        warnings = [row for row in rows(self.folder / "run") if row.get("event") == "warning"]
        self.assertEqual([text in row["text"] for row in warnings], [True])
        # Another folder has none of the rows, and need not.
        elsewhere = self.train("elsewhere", "--resume", self.folder / "run", "--stop-after", 1)
        self.assertNotIn("warning", self.done(elsewhere).stdout)

    def test_killed_before_its_last_files_they_are_written_by_the_next_start(self):
        folder = self.folder / "run"
        self.done(self.train("run", "--stop-after", 7))
        old = {name: (folder / name).read_bytes() for name in ("model.safetensors", "model-ema.safetensors")}
        self.done(self.train("run", "--resume", "auto"))
        for names in (["model.safetensors"], ["model-ema.safetensors"], list(old)):
            for how in ("stale", "gone"):
                with self.subTest(names=names, how=how):
                    for name in names:  # as a kill between the last checkpoint and these leaves them
                        (folder / name).write_bytes(old[name]) if how == "stale" else (folder / name).unlink()
                    self.done(self.train("run", "--resume", "auto"))
                    self.check_equal(folder)

    def test_a_run_that_lost_its_checkpoints_is_not_overwritten(self):
        self.done(self.train("run", "--stop-after", 7))
        folder = self.folder / "run"
        (folder / "checkpoints").rename(self.folder / "elsewhere")
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        self.check_refusal(self.train("run", "--resume", "auto"), 4, str(folder), "no checkpoint", "--output-dir")
        self.assertEqual({path.name: path.read_bytes() for path in folder.iterdir()}, before)
        (self.folder / "elsewhere").rename(folder / "checkpoints")
        self.done(self.train("run", "--resume", "auto"))
        self.check_equal(folder)

    def test_a_link_to_a_disk_that_is_not_mounted(self):
        self.done(self.train("run", "--stop-after", 7))
        folder, disk = self.folder / "run", self.folder / "disk"
        (folder / "checkpoints").rename(disk)
        (folder / "checkpoints").symlink_to(disk)
        disk.rename(self.folder / "away")
        before = (folder / "metrics.jsonl").read_bytes()
        self.check_refusal(self.train("run", "--resume", "auto"), 4, str(folder / "checkpoints"), str(disk), "mount")
        self.assertEqual((folder / "metrics.jsonl").read_bytes(), before)
        (self.folder / "away").rename(disk)
        self.done(self.train("run", "--resume", "auto"))
        self.check_equal(folder)

    def test_rows_of_a_start_without_a_checkpoint_are_dropped_and_it_is_said(self):
        self.done(self.train("run", "--stop-after", 7))
        folder = self.folder / "run"
        lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
        (folder / "metrics.jsonl").write_text("".join(lines[:3]))
        shutil.rmtree(folder / "checkpoints")
        self.assertIn("the rows of an earlier start", self.done(self.train("run", "--resume", "auto")).stdout)
        self.assertEqual((folder / "metrics-1.jsonl").read_text(), "".join(lines[:3]))
        self.check_equal(folder)

    def test_the_same_folder_by_another_path(self):
        self.done(self.train("run"))
        files = {path: path.stat().st_mtime_ns for path in (self.folder / "run").glob("*.safetensors")}
        for resume in (self.folder / "run", self.folder / "run/checkpoints/step-00000040"):
            flags = self.small(*self.extra, "--resume", resume, name="run")
            flags[flags.index("-o") + 1] = "run"
            self.assertIn("nothing left to do", self.done(run(*flags, cwd=self.folder)).stdout)
        self.assertEqual({path: path.stat().st_mtime_ns for path in files}, files)

    def test_a_fork_that_is_killed_at_once_goes_on_from_where_it_began(self):
        self.done(self.train("run", "--stop-after", 17))
        process = start(*self.small(*self.extra, "--resume", self.folder / "run", "--keep-checkpoints", 0, name="fork"))
        wait_for(lambda: checkpoints(self.folder / "fork"))
        process.kill()
        process.communicate()
        self.assertIn("step-00000017", checkpoints(self.folder / "fork"))
        self.assertIn("resumed from", self.done(self.train("fork", "--resume", "auto")).stdout)
        self.assertEqual(tensor_files(self.folder / "fork"), tensor_files(self.whole))

    def test_a_run_in_a_folder_named_checkpoints(self):
        flags = self.small(*self.extra, "--stop-after", 7)
        flags[flags.index("-o") + 1] = self.folder / "checkpoints"
        self.done(run(*flags))
        more = [*flags, "--resume", self.folder / "checkpoints"]
        self.assertIn("step-00000007", self.done(run(*more)).stdout)
        self.assertIn("step-00000014", self.done(run("ckpt", "ls", self.folder / "checkpoints")).stdout)

    def test_r15_a_fork_goes_on_with_the_best_model_of_its_run(self):
        self.done(self.train("run", "--stop-after", 17))
        self.done(self.train("fork", "--resume", self.folder / "run"))
        best = [row["update"] for row in numbers(self.folder / "fork") if row.get("best")]
        self.assertEqual(best, [row["update"] for row in numbers(self.whole) if row.get("best") and row["update"] > 17])
        self.assertEqual(tensor_files(self.folder / "fork"), tensor_files(self.whole))

    def test_in_many_pieces(self):
        for _ in range(9):
            self.done(self.train("pieces", "--resume", "auto", "--stop-after", 5))
        self.check_equal(self.folder / "pieces")

    def test_c7_at_the_end_of_an_epoch_and_of_the_run(self):
        self.done(self.train("run", "--stop-after", 2 * EPOCH))
        result = self.done(self.train("run", "--resume", "auto"))
        self.assertIn("Epoch 3 |", result.stdout)
        self.assertEqual([row["window"] for row in numbers(self.folder / "run") if "loss" in row], list(range(1, 41)))
        before = {path.name: path.read_bytes() for path in (self.folder / "run").glob("*.safetensors")}
        again = self.done(self.train("run", "--resume", "auto"))
        self.assertIn("nothing left to do", again.stdout)
        self.assertIn("done: 40 updates", again.stdout)
        self.assertEqual({path.name: path.read_bytes() for path in (self.folder / "run").glob("*.safetensors")}, before)
        self.check_equal(self.folder / "run")

    def test_f9_after_every_kind_of_end(self):
        ends = {
            "SIGTERM": (143, ["--log-interval", 1]),
            "SIGINT": (130, ["--log-interval", 1]),
            "SIGUSR1": (138, ["--log-interval", 1]),
        }
        self.extra += ["--save-interval", 0]
        for name, (code, extra) in ends.items():
            with self.subTest(name):
                process = start(
                    *self.small(*self.extra, "--epochs", 2_000_000, *extra, name=name), stdout=subprocess.DEVNULL
                )
                metrics = self.folder / name / "metrics.jsonl"
                wait_for(lambda metrics=metrics: metrics.exists() and metrics.stat().st_size > 3000)
                process.send_signal(getattr(signal, name))
                process.communicate(timeout=60)
                self.assertEqual(process.returncode, code)
                last = [row for row in rows(self.folder / name) if "loss" in row][-1]["update"]
                self.assertEqual(checkpoints(self.folder / name)[-1], f"step-{last:08}")

    def test_max_time_leaves_in_time_with_a_checkpoint(self):
        began = time.monotonic()
        result = self.done(self.train("timed", "--epochs", 2_000_000, "--max-time", "3s"))
        self.assertLess(time.monotonic() - began, 3.5)
        self.assertRegex(result.stdout, r"not finished: update \d+ of \d+ \(--max-time\)")
        last = [row for row in rows(self.folder / "timed") if "loss" in row][-1]["update"]
        self.assertEqual(checkpoints(self.folder / "timed")[-1], f"step-{last:08}")


class Refusals(ProgramTest):
    extra = ["--epochs", 2, "--save-interval", 5, "--keep-checkpoints", 0]

    def setUp(self):
        super().setUp()
        self.done(run(*self.small(*self.extra, "--stop-after", 12)))
        self.run_folder = self.folder / "run"

    def resume(self, *arguments, what="auto"):
        return run(*self.small(*self.extra, "--resume", what, *arguments))

    def test_a_run_is_not_begun_anew_in_silence(self):
        self.check_refusal(run(*self.small("--epochs", 2)), 2, "holds a run already", "--resume auto")

    def test_c9_another_run_is_refused_and_accepted_by_one_flag(self):
        cases = {
            "seed": (["--seed", 7], "seed was 0, is 7"),
            "batch": (["--grad-accum-steps", 3], "--global-batch-size) was 8, is 12"),
            "total": (["--epochs", 3], "updates of the run (--epochs, --max-steps) was 16, is 24"),
            "model": (["--hidden", 9], "hidden was 8, is 9"),
            "schedule": (["--sched", "linear"], "sched was cosine, is linear"),
        }
        for name, (arguments, words) in cases.items():
            with self.subTest(name):
                result = self.resume(*arguments)
                self.check_refusal(result, 2, words, "step-00000012", "--accept-drift")
        other = write_idx(self.folder / "other", num_train=64)
        self.check_refusal(self.resume("--data-dir", other), 2, "data was ")
        accepted = self.resume("--seed", 7, "--accept-drift")
        self.assertEqual(accepted.returncode, 0, accepted.stderr)
        self.assertIn("seed was 0, is 7 (accepted)", accepted.stderr)
        changed = [row for row in rows(self.run_folder) if row.get("event") == "changed"]
        self.assertIn(
            {"key": "seed", "before": "0", "now": "7"}, [{k: r[k] for k in ("key", "before", "now")} for r in changed]
        )

    def test_another_learning_rate_warns_and_other_paths_are_free(self):
        result = self.resume("--lr", 0.01, "--log-interval", 1)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("lr was 0.001, is 0.01", result.stderr)
        self.assertNotIn("log_interval", result.stderr)
        self.assertIn("log_interval", [row.get("key") for row in rows(self.run_folder)])

    def test_f7_a_broken_checkpoint_is_named_and_the_one_before_used(self):
        self.assertEqual(
            checkpoints(self.run_folder), ["step-00000005", "step-00000008", "step-00000010", "step-00000012"]
        )
        newest = self.run_folder / "checkpoints/step-00000012/optimizer.safetensors"
        data = bytearray(newest.read_bytes())
        data[len(data) // 2] ^= 1
        newest.write_bytes(data)
        result = self.resume()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("optimizer.safetensors", result.stderr)
        self.assertIn("step-00000010", result.stdout)
        whole = self.folder / "whole"
        self.done(run(*self.small(*self.extra, name="whole")))
        self.assertEqual(tensor_files(self.run_folder), tensor_files(whole))
        self.assertEqual(numbers(self.run_folder), numbers(whole))

    def test_f7_never_to_update_0_in_silence(self):
        for path in (self.run_folder / "checkpoints").glob("*/state.json"):
            path.write_text(path.read_text()[:-20])
        result = self.resume()
        self.check_refusal(result, 4, "step-00000005", "step-00000010", "step-00000012")

    def test_a_checkpoint_by_path(self):
        old = self.run_folder / "checkpoints/step-00000005"
        self.check_refusal(self.resume(what=old), 2, "the run went on to step-00000012")
        self.done(run(*self.small(*self.extra, "--resume", old, name="fork")))
        windows = [row["window"] for row in rows(self.folder / "fork") if "loss" in row]
        self.assertEqual(windows, list(range(6, 17)))
        self.done(self.resume(what=self.run_folder / "checkpoints/step-00000012"))
        self.assertEqual(tensor_files(self.folder / "fork"), tensor_files(self.run_folder))
        nowhere = self.resume("-o", self.folder / "new", what=self.folder / "data")
        self.check_refusal(nowhere, 4, "no checkpoint there")

    def test_auto_in_a_new_folder_begins(self):
        result = run(*self.small("--epochs", 1, "--resume", "auto", name="new"))
        self.done(result)
        self.check_refusal(
            run("train", "--resume", "auto", "--data-dir", self.folder / "data"), 2, "--resume auto", "--output-dir"
        )

    def test_a_killed_start_without_a_checkpoint_begins_anew(self):
        folder = self.folder / "early"
        folder.mkdir()
        (folder / "config.toml").write_text("# half")
        (folder / "metrics.jsonl").write_text('{"window":1,"upda')
        self.done(run(*self.small("--epochs", 1, "--resume", "auto", name="early")))
        self.assertEqual([row["window"] for row in rows(folder) if "loss" in row], list(range(1, 9)))


if __name__ == "__main__":
    unittest.main()
