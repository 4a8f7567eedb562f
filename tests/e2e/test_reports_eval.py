"""Faults that were reported on evaluation, data and model files of version 0.1, by their numbers."""

import json
import pathlib
import shutil
import sys
import unittest

import torch
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import ProgramTest, run, write_idx  # noqa: E402

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 47040016\n"


class Evaluation(ProgramTest):
    def test_r16_a_relative_folder_means_the_same_from_elsewhere(self):
        words = self.small("--epochs", 1)
        words[words.index("--data-dir") + 1] = "data"
        self.done(run(*words, cwd=self.folder))
        other = self.folder / "other"
        other.mkdir()
        self.done(run("eval", "../run", "-q", cwd=other))
        config = (self.folder / "run/config.toml").read_text()
        self.assertIn(f'data_dir = "{self.folder}/data"', config)
        shutil.move(self.folder / "data", self.folder / "moved")
        self.check_refusal(
            run("eval", "../run", "-q", cwd=other), 5, f"there is no folder {self.folder}/data", "--data-dir"
        )
        self.done(run("eval", "../run", "-q", "--data-dir", "../moved", cwd=other))

    def test_r18_weights_that_are_nan_are_a_failure(self):
        self.done(run(*self.small("--epochs", 1)))
        file = self.folder / "run/model.safetensors"
        tensors = load_file(file)
        with open(file, "rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
            metadata = json.loads(stream.read(size))["__metadata__"]
        tensors["fc1.weight"][0, 0] = float("nan")
        broken = self.folder / "broken.safetensors"
        save_file(tensors, broken, metadata)
        for flags in ([], ["--json"]):
            result = run("eval", broken, *flags)
            self.assertEqual(result.returncode, 3, result.stdout)
            self.assertIn("tensor fc1.weight holds NaN", result.stderr)
        self.assertEqual(json.loads(result.stdout)["val_loss"], "NaN")

    def test_r19_training_data_as_evaluation_data_are_told(self):
        data = write_idx(self.folder / "data")
        for part in ("images-idx3-ubyte", "labels-idx1-ubyte"):
            shutil.copy(data / f"train-{part}", data / f"t10k-{part}")
        result = run(*self.small("--epochs", 1))
        self.assertEqual(result.returncode, 0)
        self.assertIn("warning: the evaluation data are the training data", result.stderr)

    def test_r20_averages_that_are_longer_than_the_run_are_told(self):
        result = run(*self.small("--epochs", 1, "--ema", 0.9999))
        self.assertEqual(result.returncode, 0)
        self.assertIn("warning: --ema 0.9999 averages over about 10,000 updates, and the run has 8", result.stderr)
        self.done(run(*self.small("--epochs", 1, "--ema", 0.5, name="short")))

    def test_r21_predictions_go_where_a_link_leads(self):
        self.done(run(*self.small("--epochs", 1)))
        link = self.folder / "link.csv"
        link.symlink_to("target.csv")
        self.done(run("eval", self.folder / "run", "-q", "--predictions", link))
        self.assertTrue(link.is_symlink())
        self.assertIn("sample,target", (self.folder / "target.csv").read_text())

    def test_r57_predictions_overwrite_no_file_of_a_run_and_no_other_unasked(self):
        self.done(run(*self.small("--epochs", 1)))
        folder = self.folder / "run"
        checkpoint = next((folder / "checkpoints").iterdir())
        for name in ("model.safetensors", "metrics.jsonl", "config.toml", f"checkpoints/{checkpoint.name}/state.json"):
            before = (folder / name).read_bytes()
            for force in ([], ["--force"]):
                result = run("eval", folder, "-q", "--predictions", folder / name, *force)
                self.check_refusal(result, 2, "is a file of a run")
            self.assertEqual((folder / name).read_bytes(), before)
        mine = self.folder / "mine.csv"
        mine.write_text("mine")
        self.check_refusal(run("eval", folder, "-q", "--predictions", mine), 2, "is there already", "--force")
        self.assertEqual(mine.read_text(), "mine")
        self.done(run("eval", folder, "-q", "--predictions", mine, "--force"))
        self.assertIn("sample,target", mine.read_text())
        self.check_refusal(
            run("ckpt", "export", folder, folder / "best.safetensors", "--force"), 2, "is a file of a run"
        )


class Files(ProgramTest):
    def test_r39_a_file_of_another_kind_is_named(self):
        torch.save({"a": torch.ones(2)}, self.folder / "zip.safetensors")
        for name, content, words in (
            ("lfs.safetensors", LFS.encode(), "is a Git LFS pointer"),
            ("page.safetensors", b"<!DOCTYPE html>\n<html></html>\n", "is an HTML page"),
            ("zip.safetensors", None, "is a zip archive, as torch.save writes"),
            ("packed.safetensors", b"\x1f\x8b" + bytes(30), "is gzip data"),
        ):
            with self.subTest(name=name):
                if content is not None:
                    (self.folder / name).write_bytes(content)
                self.check_refusal(run("eval", self.folder / name), 4, words)
        self.small()
        for content, words in ((LFS.encode(), "a Git LFS pointer"), (b"<html>" + bytes(100), "an HTML page")):
            (self.folder / "data/train-images-idx3-ubyte").write_bytes(content)
            self.check_refusal(run(*self.small()), 5, words)

    def test_r40_data_as_others_name_and_place_them(self):
        for i, (folder, mark) in enumerate((("", "."), ("raw", "-"), ("MNIST/raw", "-"), ("MNIST/raw", "."))):
            with self.subTest(folder=folder, mark=mark):
                root = self.folder / f"d{i}"
                data = write_idx(root / folder)
                for file in list(data.iterdir()):
                    file.rename(data / file.name.replace("-idx", mark + "idx"))
                words = self.small("--stop-after", 1, name=f"run{i}")
                words[words.index("--data-dir") + 1] = str(root)
                self.done(run(*words))

    def test_r40_a_folder_in_the_place_of_a_file_is_passed_by_or_named(self):
        self.small()
        data = self.folder / "data"
        (data / "train-images-idx3-ubyte").rename(data / "train-images.idx3-ubyte")
        (data / "train-images-idx3-ubyte").mkdir()
        self.done(run(*self.small("--stop-after", 1)))
        shutil.rmtree(data)
        (data / "zalando").mkdir(parents=True)
        (data / "train.csv").write_text("x")
        self.check_refusal(
            run(*self.small(name="b")), 5, "has no file train-images-idx3-ubyte", "but train.csv, zalando/"
        )

    def test_r41_metadata_that_are_null_are_none(self):
        header = b'{"__metadata__":null,"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
        header += b" " * (-len(header) % 8)
        file = self.folder / "null.safetensors"
        file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
        self.assertEqual(list(load_file(file)), ["a"])  # the reference reader
        self.done(run("ckpt", "export", file, self.folder / "out.safetensors"))
        # An evaluation needs metadata, and says so.
        self.check_refusal(run("eval", file), 4, "metadata")

    def test_r7_a_folder_that_cannot_be_looked_at_is_told_with_the_cause(self):
        data = self.folder / "loop"
        data.symlink_to("loop")
        words = self.small()
        words[words.index("--data-dir") + 1] = str(data)
        self.check_refusal(run(*words), 5, "Too many levels of symbolic links")


if __name__ == "__main__":
    unittest.main()
