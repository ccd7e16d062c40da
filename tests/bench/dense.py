"""A variable of 64 MB, two workers, each pushing and pulling all of it in every synchronous step, beside
PyTorch DDP: GB/s = worker steps a second x 128 MB, for both. The server's memory is printed beside it."""
import os
import tempfile

import _cluster

FEATURES = 16_000_000
JOB = """
name: "dense"
dataset { train_files: "%s" libsvm { num_features: %d } shuffle: false }
model { layers { dense { units: 1 use_bias: false kernel_initializer { zeros {} } } } }
loss { mean_squared_error {} }
optimizer { sgd { learning_rate: 0.01 } }
training { global_batch_size: 2 replicas: 2 steps: %d }
"""
PEERS = {
    "torch_ddp": ("torch", "torch_peer.py", "--mode", "ddp"),
    "tf_parameter_server": ("tf", "tf_ps.py", "--servers", "1"),
}

parser = _cluster.arguments(__doc__)
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--servers", type=int, default=1)
args = parser.parse_args()

folder = tempfile.mkdtemp()
data, job = os.path.join(folder, "dense.svm"), os.path.join(folder, "job.textproto")
with open(data, "w", encoding="ascii") as f:
    f.write("1 1:0.5 16000000:0.25\n0 2:0.5 15000000:0.25\n")
with open(job, "w", encoding="ascii") as f:
    f.write(JOB % (data, FEATURES, args.steps))

ours, rss, peers = [], {}, {name: [] for name in PEERS}
for _ in range(args.rounds):
    summary = _cluster.run_job(job, args.servers, 2)
    ours.append(summary["steps"] * 2 * 2 * FEATURES * 4 / summary["seconds"] / 1e9)
    rss = summary["rss_mb"]
    for name, (kind, script, *extra) in PEERS.items():
        result = _cluster.run_peer(args, kind, script, *extra, "--work", "dense", "--workers", "2")
        if result:
            peers[name].append(result["gb_s"])
us = _cluster.median(ours)
found = {name: _cluster.median(values) for name, values in peers.items() if values}
_cluster.report("dense_64MB", us, "GB/s", max(found.values(), default=us), rss_mb=rss)
for name, value in found.items():
    print(_cluster.json.dumps({"name": f"dense_{name}", "value": round(value, 3), "unit": "GB/s",
                               "limit": round(us, 3), "ratio": round(us / value, 2)}), flush=True)
