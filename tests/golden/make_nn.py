"""Writes nn.json: losses, gradients and metrics of small models as Keras computes them.

    python3 -m venv VENV && VENV/bin/pip install tensorflow-cpu
    VENV/bin/python tests/golden/make_nn.py > tests/golden/nn.json

Made with TensorFlow 2.21.0 and Keras 3.15.1. Weights, features and labels come from a small generator
of this file, so that the numbers do not depend on the version of numpy.
"""

import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf

ACTIVATIONS = """linear relu sigmoid tanh softmax elu selu softplus softsign silu gelu leaky_relu
exponential hard_sigmoid relu6""".split()


def dense(units, activation="linear", bias=True):
    text = 'layers { dense { units: %d activation: "%s" use_bias: %s } }' % (
        units, activation, str(bias).lower())
    return text, lambda: keras.layers.Dense(units, activation, bias)


def activation(name):
    return ('layers { activation { activation: "%s" } }' % name,
            lambda: keras.layers.Activation(name))


def flatten():
    return "layers { flatten {} }", keras.layers.Flatten


def scce(from_logits=False):
    return ("sparse_categorical_crossentropy { from_logits: %s }" % str(from_logits).lower(),
            keras.losses.SparseCategoricalCrossentropy(from_logits, reduction="sum"))


def bce(from_logits=False, smoothing=0.0):
    return ("binary_crossentropy { from_logits: %s label_smoothing: %g }" % (
        str(from_logits).lower(), smoothing),
            keras.losses.BinaryCrossentropy(from_logits, smoothing, reduction="sum"))


def mse():
    return "mean_squared_error {}", keras.losses.MeanSquaredError(reduction="sum")


# Name, example shape, batch size, classes, scale of the weights, layers, loss.
CASES = [("dense_" + a, (5,), 4, 3, 1, [dense(6, a), dense(3, "softmax")], scce())
         for a in ACTIVATIONS]
CASES += [("layer_" + a, (5,), 3, 2, 1, [dense(4), activation(a), dense(1)], mse())
          for a in ACTIVATIONS]
CASES += [
    ("mlp", (4, 4), 7, 10, 1, [flatten(), dense(9, "relu"), dense(10, "softmax")], scce()),
    ("one_example", (4, 4), 1, 10, 1, [flatten(), dense(9, "relu"), dense(10, "softmax")], scce()),
    ("rows", (3, 5), 2, 4, 1, [dense(4, "gelu"), flatten(), dense(4)], scce(True)),
    ("rows_softmax", (3, 5), 2, 4, 1, [activation("softmax"), dense(2), flatten(), dense(4)], scce(True)),
    ("no_bias", (5,), 4, 3, 1, [dense(6, "tanh", False), dense(3, "linear", False)], scce(True)),
    ("softmax_layer", (5,), 4, 3, 1, [dense(3), activation("softmax")], scce()),
    # Implicit logits: nothing is clipped, although the probabilities are 0 and 1.
    ("softmax_extreme", (5,), 4, 3, 60, [dense(3, "softmax")], scce()),
    ("softmax_then_linear_extreme", (5,), 4, 3, 60, [dense(3, "softmax"), activation("linear")], scce()),
    ("sigmoid_extreme", (5,), 4, 2, 60, [dense(1, "sigmoid")], bce()),
    ("softmax_from_logits", (5,), 4, 3, 1, [dense(3, "softmax")], scce(True)),
    ("sigmoid_scce", (5,), 4, 3, 1, [dense(3, "sigmoid")], scce()),
    # A flatten hides the logits: probabilities are clipped and renormalised.
    ("softmax_flatten", (5,), 4, 3, 1, [dense(3, "softmax"), flatten()], scce()),
    ("softmax_flatten_extreme", (5,), 4, 3, 60, [dense(3, "softmax"), flatten()], scce()),
    ("probabilities", (5,), 4, 3, 1, [dense(3, "hard_sigmoid")], scce()),
    ("one_class", (5,), 4, 1, 1, [dense(2, "relu"), dense(1, "softmax")], scce()),
    ("bce_sigmoid", (5,), 4, 2, 1, [dense(1, "sigmoid")], bce()),
    ("bce_smooth", (5,), 4, 2, 1, [dense(1, "sigmoid")], bce(smoothing=0.1)),
    ("bce_logits", (5,), 6, 2, 1, [dense(1)], bce(True)),
    ("bce_logits_smooth", (5,), 4, 2, 1, [dense(1)], bce(True, 0.3)),
    ("bce_probabilities", (5,), 4, 2, 1, [dense(1, "hard_sigmoid")], bce()),
    ("bce_probabilities_clipped", (5,), 4, 2, 30, [dense(1, "hard_sigmoid")], bce(smoothing=0.2)),
    ("mse_sigmoid", (5,), 4, 2, 1, [dense(1, "sigmoid")], mse()),
    ("one_feature", (1,), 1, 2, 1, [dense(1)], mse()),
]


def numbers(count, seed):
    """Floats in [-1, 1), a linear congruential generator's."""
    out = np.empty(count, np.float32)
    for i in range(count):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        out[i] = (seed >> 40) / 2.0**23 - 1
    return out


def run(number, case):
    name, shape, batch, classes, scale, layers, (loss_text, loss) = case
    model = keras.Sequential([keras.Input(shape)] + [make() for _, make in layers])
    weights = numbers(model.count_params(), 2 * number) * np.float32(scale)
    parts, at = [], 0
    for w in model.trainable_variables:
        size = int(np.prod(w.shape))
        parts.append(weights[at:at + size].reshape(w.shape))
        at += size
    model.set_weights(parts)
    x = numbers(batch * int(np.prod(shape)), 2 * number + 1).reshape((batch,) + shape)
    y = np.arange(batch) * 7 % 5 % classes
    targets = y.reshape(-1, 1).astype(np.float32)
    with tf.GradientTape() as tape:
        predictions = model(x, training=True)
        value = loss(targets, predictions)
    gradients = tape.gradient(value, model.trainable_variables)
    outputs = predictions.shape[-1]
    accuracy = (keras.metrics.binary_accuracy if outputs == 1 else
                keras.metrics.sparse_categorical_accuracy)(targets, predictions)
    text = lambda values: [float("%.9g" % v) for v in np.ravel(values)]
    result = {
        "name": name,
        "job": "model { %s } loss { %s } metrics { accuracy {} }%s" % (
            " ".join(t for t, _ in layers), loss_text,
            " metrics { mean_squared_error {} }" if outputs == 1 else ""),
        "shape": list(shape), "batch": batch, "weights": text(weights), "features": text(x),
        "labels": text(y), "loss": float(value), "accuracy": float(np.sum(accuracy)),
        "gradient": text(np.concatenate([np.ravel(g) for g in gradients])),
    }
    if outputs == 1:
        result["mean_squared_error"] = float(np.sum(
            keras.metrics.mean_squared_error(targets, predictions)))
    return result


results = [run(i, case) for i, case in enumerate(CASES)]
sys.stdout.write("[\n" + ",\n".join(json.dumps(r) for r in results) + "\n]\n")
