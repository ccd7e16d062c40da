"""What a standby costs: steps a second of the same job with and without, one server process more for each
shard. `standby_tiny` is a model of 10 parameters, `standby_default` the Fashion-MNIST job, `standby_16MB` a
variable of 16 MB pushed and pulled whole in every step. `value` is with standbys, `limit` without."""
import os
import tempfile

import _cluster

JOB = """
name: "standby"
dataset { train_files: "%s" libsvm { num_features: %d } shuffle: false }
model { layers { dense { units: %d use_bias: false } } layers { dense { units: 1 use_bias: false } } }
loss { mean_squared_error {} }
optimizer { adam {} }
training { global_batch_size: 2 replicas: 1 steps: %d }
"""

parser = _cluster.arguments(__doc__)
args = parser.parse_args()
folder = tempfile.mkdtemp()


def write_job(name, features, units, steps):
    data, job = os.path.join(folder, f"{name}.svm"), os.path.join(folder, f"{name}.textproto")
    with open(data, "w", encoding="ascii") as f:
        f.write(f"1 1:0.5 {features}:0.25\n0 2:0.5 {features - 1}:0.25\n")
    with open(job, "w", encoding="ascii") as f:
        f.write(JOB % (data, features, units, steps))
    return job


CASES = {
    "standby_tiny": (write_job("tiny", 9, 1, 20000), 1, 1, ()),
    "standby_default": ("examples/fashion_mnist/job.textproto", 2, 2, ("training.epochs=3",)),
    "standby_16MB": (write_job("large", 1000, 4000, 100), 1, 1, ()),
}
for name, (job, servers, workers, sets) in CASES.items():
    rates = {0: [], 1: []}
    for _ in range(args.rounds):
        for standby in rates:
            summary = _cluster.run_job(job, servers, workers, f"servers.standby={standby}", *sets,
                                       standbys=standby * servers)
            rates[standby].append(summary["steps"] / summary["seconds"])
    _cluster.report(name, _cluster.median(rates[1]), "steps/s", _cluster.median(rates[0]))
