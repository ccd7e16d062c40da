"""Writes schedules.json: learning rates by Keras 3's schedules, as exact float32 values.

usage: python make_schedules.py    (a Python with tensorflow and keras; prints to schedules.json beside it)
"""
import json
import os

import keras
import numpy as np

CASES = [(0.003, 1175, 0.0001), (0.002, 2345, 0.0001), (0.1, 7, 0.0), (0.5, 1000003, 0.25), (0.01, 1, 0.02)]
STEPS = [0, 1, 2, 3, 5, 6, 7, 8, 100, 587, 1174, 1175, 1176, 2344, 100000, 1000002, 1000003, 5000000]

out = []
for initial, decay_steps, end in CASES:
    schedule = keras.optimizers.schedules.PolynomialDecay(initial, decay_steps, end)
    rates = [float(np.float32(keras.ops.convert_to_numpy(schedule(np.int64(step))))) for step in STEPS]
    out.append({"learning_rate": initial, "decay_steps": decay_steps, "end_learning_rate": end,
                "steps": STEPS, "rates": rates})
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "schedules.json")
with open(path, "w", encoding="ascii") as f:
    json.dump(out, f, indent=1)
    f.write("\n")
