"""A variable of 64 MB (or `--megabytes`), two workers, each pushing and pulling all of it in every synchronous
step, beside PyTorch DDP: GB/s = worker steps a second x twice its size, for both. `server_memory` is the peak
of a server, its limit what the design allows: two weight buffers and R/2 + 1 = 2 gradients, and 60 MB."""
import os
import tempfile

import _cluster

JOB = """
name: "dense"
dataset { train_files: "%s" libsvm { num_features: %d } shuffle: false }
model {
  layers { dense { units: 4000 use_bias: false } }
  layers { dense { units: 1 use_bias: false } }
}
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
parser.add_argument("--megabytes", type=int, default=64, help="size of the variable, in 10^6 bytes")
args = parser.parse_args()
features = args.megabytes * 250_000 // 4000
if args.megabytes != 64:
    args.no_peers = True  # They have one size.

folder = tempfile.mkdtemp()
data, job = os.path.join(folder, "dense.svm"), os.path.join(folder, "job.textproto")
with open(data, "w", encoding="ascii") as f:
    f.write(f"1 1:0.5 {features}:0.25\n0 2:0.5 {features - 1}:0.25\n")
with open(job, "w", encoding="ascii") as f:
    f.write(JOB % (data, features, args.steps))

ours, rss, peers = [], {}, {name: [] for name in PEERS}
for _ in range(args.rounds):
    summary = _cluster.run_job(job, args.servers, 2)
    ours.append(summary["steps"] * 2 * 2 * args.megabytes * 1e6 / summary["seconds"] / 1e9)
    rss = summary["rss_mb"]
    for name, (kind, script, *extra) in PEERS.items():
        result = _cluster.run_peer(args, kind, script, *extra, "--work", "dense", "--workers", "2")
        if result:
            peers[name].append(result["gb_s"])
us = _cluster.median(ours)
found = {name: _cluster.median(values) for name, values in peers.items() if values}
_cluster.report(f"dense_{args.megabytes}MB", us, "GB/s", max(found.values(), default=us), rss_mb=rss)
_cluster.report("server_memory", rss["server"], "MB", 4 * args.megabytes / args.servers + 60)
for name, value in found.items():
    print(_cluster.json.dumps({"name": f"dense_{name}", "value": round(value, 3), "unit": "GB/s",
                               "limit": round(us, 3), "ratio": round(us / value, 2)}), flush=True)
