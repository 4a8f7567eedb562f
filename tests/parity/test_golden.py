"""The golden tables of tests/golden are what their generators write with the torch that is installed."""

import unittest

import make_lr_schedule
import make_scaler_trajectory


class Golden(unittest.TestCase):
    maxDiff = 2000

    def test_scaler_trajectory(self):
        self.assertEqual(make_scaler_trajectory.GOLDEN.read_text(), make_scaler_trajectory.text())

    def test_lr_schedule(self):
        self.assertEqual(make_lr_schedule.GOLDEN.read_text(), make_lr_schedule.text())


if __name__ == "__main__":
    unittest.main()
