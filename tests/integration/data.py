"""Small data sets and job files, the same in every run."""
import os
import random
import struct

CLASSES = 5
SIDE = 8


def _idx(path, magic, shape, values):
    with open(path, "wb") as out:
        out.write(struct.pack(f">{1 + len(shape)}I", magic, *shape))
        out.write(bytes(values))


def write_idx(folder, name, count, seed=0):
    """Pictures of CLASSES kinds with noise: NAME-images and NAME-labels in `folder`."""
    kinds = random.Random(7)
    patterns = [[kinds.randrange(56) for _ in range(SIDE * SIDE)] for _ in range(CLASSES)]
    draw = random.Random(f"{name} {seed}")
    labels = [draw.randrange(CLASSES) for _ in range(count)]
    pixels = bytearray()
    for label in labels:
        noise = draw.randbytes(SIDE * SIDE)
        pixels += bytes(p + n * 200 // 256 for p, n in zip(patterns[label], noise))
    images, label_file = (os.path.join(folder, f"{name}-{what}") for what in ("images", "labels"))
    _idx(images, 0x803, (count, SIDE, SIDE), pixels)
    _idx(label_file, 0x801, (count,), labels)
    return images, label_file


def write_libsvm(path, count, features=20, seed=0, huge=()):
    """Lines whose label is +1 where the first features outweigh the others. The rows in `huge` have values
    whose square is no float."""
    draw = random.Random(f"svm {seed}")
    with open(path, "w", encoding="ascii") as out:
        for row in range(count):
            value = "1e30" if row in huge else "1"
            indices = sorted(draw.sample(range(1, features + 1), 6))
            label = "+1" if sum(indices) < 3 * (features + 1) else "-1"
            out.write(label + "".join(f" {i}:{value}" for i in indices) + "\n")
    return path


def picture_job(folder, tests=300):
    """A job over write_idx's data: 1,003 examples to train, `tests` to evaluate. Returns its path."""
    train = write_idx(folder, "train", 1003)
    test = write_idx(folder, "test", tests)
    path = os.path.join(folder, "job.textproto")
    with open(path, "w", encoding="utf-8") as out:
        out.write(f"""
name: "pictures"
seed: 1
dataset {{
  train_files: ["{train[0]}", "{train[1]}"]
  test_files: ["{test[0]}", "{test[1]}"]
  idx {{}}
}}
model {{
  layers {{ flatten {{}} }}
  layers {{ dense {{ units: 32 activation: "relu" }} }}
  layers {{ dense {{ units: {CLASSES} activation: "softmax" }} }}
}}
loss {{ sparse_categorical_crossentropy {{}} }}
metrics {{ accuracy {{}} }}
optimizer {{ adam {{}} }}
training {{ global_batch_size: 64 replicas: 4 epochs: 2 }}
evaluation {{ batch_size: 7 }}
""")
    return path


def rows_job(folder, huge=()):
    """Logistic regression over write_libsvm's data, or least squares when some of it is huge. Returns its
    path."""
    rows = write_libsvm(os.path.join(folder, "train.svm"), 400, huge=huge)
    activation, loss = ("linear", "mean_squared_error") if huge else ("sigmoid", "binary_crossentropy")
    path = os.path.join(folder, "rows.textproto")
    with open(path, "w", encoding="utf-8") as out:
        out.write(f"""
name: "rows"
dataset {{ train_files: "{rows}" test_files: "{rows}" libsvm {{ num_features: 20 }} }}
model {{ layers {{ dense {{ units: 1 activation: "{activation}" }} }} }}
loss {{ {loss} {{}} }}
metrics {{ accuracy {{}} }}
optimizer {{ adam {{}} }}
training {{ global_batch_size: 64 replicas: 4 steps: 20 }}
""")
    return path
