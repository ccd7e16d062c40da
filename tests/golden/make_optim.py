#!/usr/bin/env python3
"""Writes optim.json: what Keras's optimizers do, step by step, for tests/common/optim/golden_test.cc.

    python3 -m venv ~/keras && ~/keras/bin/pip install tensorflow-cpu==2.21.0 keras==3.15.1
    ~/keras/bin/python tests/golden/make_optim.py

Run it again only to add cases: the file is committed, and building and testing need no Python package.
Values are printed with nine digits, which name a float32 exactly. Everything is run eagerly on the
CPU, so each operation rounds to float32 on its own.
"""
import json
import os
import pathlib

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras  # noqa: E402
import numpy as np  # noqa: E402

STEPS = 10

# Name; the optimizer as a job file has it; the same in Keras; updates that came before (they count in
# the bias correction); shapes of the variables.
SHAPES = [(), (13,), (3, 1, 5)]
CASES = [
    ("sgd", "sgd {}", lambda o: o.SGD(), 0),
    ("sgd_rate", "sgd { learning_rate: 0.37 }", lambda o: o.SGD(0.37), 0),
    ("momentum", "sgd { learning_rate: 0.1 momentum: 0.9 }", lambda o: o.SGD(0.1, 0.9), 0),
    (
        "nesterov",
        "sgd { learning_rate: 0.05 momentum: 0.85 nesterov: true }",
        lambda o: o.SGD(0.05, 0.85, nesterov=True),
        0,
    ),
    ("adam", "adam {}", lambda o: o.Adam(), 0),
    (
        "adam_all_fields",
        "adam { learning_rate: 0.02 beta_1: 0.85 beta_2: 0.9935 epsilon: 0.001 }",
        lambda o: o.Adam(0.02, 0.85, 0.9935, 0.001),
        0,
    ),
    ("adam_late", "adam { beta_2: 0.9999 }", lambda o: o.Adam(beta_2=0.9999), 4321),
    ("adam_very_late", "adam {}", lambda o: o.Adam(), 10_000_000),
    ("adagrad", "adagrad {}", lambda o: o.Adagrad(), 0),
    (
        "adagrad_all_fields",
        "adagrad { learning_rate: 0.3 initial_accumulator_value: 0.5 epsilon: 0.01 }",
        lambda o: o.Adagrad(0.3, 0.5, 0.01),
        0,
    ),
]


def flat(array):
    return [Number(x) for x in np.asarray(array, dtype=np.float32).reshape(-1)]


class Number(float):
    """A float that json prints with nine digits."""

    def __repr__(self):
        return "%.9g" % self


def gradient(random, shape):
    """Normal numbers over six decades, one in eight exactly zero."""
    scale = 10.0 ** random.integers(-4, 3, shape)
    kept = random.random(shape) > 0.125
    return (random.standard_normal(shape) * scale * kept).astype(np.float32)


def run(text, make, steps_before, seed):
    random = np.random.default_rng(seed)
    initial = [random.standard_normal(s).astype(np.float32) for s in SHAPES]
    variables = [keras.Variable(w) for w in initial]
    optimizer = make(keras.optimizers)
    optimizer.build(variables)
    optimizer.iterations.assign(steps_before)
    updates = []
    for _ in range(STEPS):
        gradients = [gradient(random, s) for s in SHAPES]
        optimizer.apply([keras.ops.convert_to_tensor(g) for g in gradients])
        updates.append(
            {
                "gradients": [flat(g) for g in gradients],
                "weights": [flat(v.numpy()) for v in variables],
            }
        )
    return {
        "optimizer": text,
        "steps_before": steps_before,
        "initial": [flat(w) for w in initial],
        "updates": updates,
        "slots": slots(optimizer, len(variables)),
    }


def slots(optimizer, num_variables):
    """The slots after the last step: a list a variable, a list a slot."""
    kinds = [
        getattr(optimizer, name)
        for name in ("momentums", "_momentums", "_velocities", "_accumulators")
        if getattr(optimizer, name, None)
    ]
    return [[flat(kind[i].numpy()) for kind in kinds] for i in range(num_variables)]


def dump(value, depth=0):
    """JSON with a line for each array of numbers."""
    pad = " " * depth
    if isinstance(value, dict):
        inner = ",\n".join(f"{pad} {json.dumps(k)}: {dump(v, depth + 1)}" for k, v in value.items())
        return "{\n" + inner + "\n" + pad + "}"
    if isinstance(value, list) and value and not isinstance(value[0], Number):
        return "[\n" + ",\n".join(pad + " " + dump(v, depth + 1) for v in value) + "\n" + pad + "]"
    if isinstance(value, list):
        return "[" + ", ".join(map(repr, value)) + "]"
    return json.dumps(value)


def main():
    document = {"keras": keras.__version__}
    document["cases"] = {
        name: run(text, make, before, seed) for seed, (name, text, make, before) in enumerate(CASES)
    }
    path = pathlib.Path(__file__).with_name("optim.json")
    path.write_text(dump(document) + "\n")


if __name__ == "__main__":
    main()
