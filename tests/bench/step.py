"""The fixed cost of a step: a model of 10 parameters, one server, one worker, in the fused form (one exchange a
step), beside the peers' tiny steps. `step_tiny` is in microseconds, its limit 150; lower is better, and
`ratio` is limit to value."""
import os
import tempfile

import _cluster

JOB = """
name: "tiny"
dataset { train_files: "%s" libsvm { num_features: 10 } }
model { layers { dense { units: 1 use_bias: false } } }
loss { mean_squared_error {} }
optimizer { sgd { learning_rate: 0.01 } }
training { global_batch_size: 2 replicas: %d steps: %d }
"""
PEERS = {
    "torch_rpc": ("torch", "torch_rpc.py", "--workers", "2"),
    "torch_ddp": ("torch", "torch_peer.py", "--mode", "ddp", "--workers", "2"),
    "tf_parameter_server": ("tf", "tf_ps.py", "--servers", "1", "--workers", "2"),
}

parser = _cluster.arguments(__doc__)
parser.add_argument("--steps", type=int, default=20000)
args = parser.parse_args()

folder = tempfile.mkdtemp()
data, jobs = os.path.join(folder, "tiny.svm"), {}
with open(data, "w", encoding="ascii") as f:
    for row in range(2):
        f.write("1 " + " ".join(f"{i + 1}:{(row * 10 + i) / 9.5 - 1:.4f}" for i in range(10)) + "\n")
for replicas in (1, 2):
    jobs[replicas] = os.path.join(folder, f"job{replicas}.textproto")
    with open(jobs[replicas], "w", encoding="ascii") as f:
        f.write(JOB % (data, replicas, args.steps))

one, two, peers = [], [], {name: [] for name in PEERS}
for _ in range(args.rounds):
    one.append(_cluster.run_job(jobs[1], 1, 1)["seconds"] / args.steps * 1e6)
    two.append(args.steps / _cluster.run_job(jobs[2], 1, 2)["seconds"])
    for name, (kind, script, *extra) in PEERS.items():
        result = _cluster.run_peer(args, kind, script, *extra, "--work", "tiny", "--steps", "1500")
        if result:
            peers[name].append(result["steps_s"])
us = _cluster.median(one)
print(_cluster.json.dumps({"name": "step_tiny", "value": round(us, 1), "unit": "us", "limit": 150,
                           "ratio": round(150 / us, 3)}), flush=True)
found = {name: _cluster.median(values) for name, values in peers.items() if values}
_cluster.report("step_tiny_rate", 1e6 / us, "steps/s", max(found.values(), default=1e6 / us))
_cluster.report("step_tiny_two_workers", _cluster.median(two), "steps/s",
                max(found.values(), default=1e6 / us))
for name, value in found.items():
    print(_cluster.json.dumps({"name": f"step_{name}", "value": round(value, 1), "unit": "steps/s",
                               "limit": round(1e6 / us, 1), "ratio": round(1e6 / us / value, 2)}),
          flush=True)
