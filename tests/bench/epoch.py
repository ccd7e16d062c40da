"""Images a second of the default job's model (784-128-10, Adam, batch 256), 2 workers and 2 servers, beside
the same work in PyTorch and TensorFlow, in turn, several rounds. A line for us and one for each peer; a
peer's `ratio` is ours to it."""
import _cluster

JOB = "examples/fashion_mnist/job.textproto"
PEERS = {
    "torch_ddp": ("torch", "torch_peer.py", "--mode", "ddp"),
    "torch_rpc": ("torch", "torch_rpc.py"),
    "tf_multi_worker": ("tf", "tf_mwms.py"),
    "tf_parameter_server": ("tf", "tf_ps.py", "--servers", "1"),
}

parser = _cluster.arguments(__doc__)
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--set", action="append", default=[], help="further changes of the job")
args = parser.parse_args()

ours, peers, best = [], {name: [] for name in PEERS}, None
for _ in range(args.rounds):
    best = _cluster.run_job(JOB, 2, 2, "training.global_batch_size=256",
                            f"training.epochs={args.epochs}", *args.set)
    ours.append(best["examples_per_second"])
    for name, (kind, script, *extra) in PEERS.items():
        result = _cluster.run_peer(args, kind, script, *extra, "--work", "mlp", "--workers", "2")
        if result:
            peers[name].append(result["examples_s"])
us = _cluster.median(ours)
found = {name: _cluster.median(values) for name, values in peers.items() if values}
_cluster.report("epoch_tandem", us, "images/s", max(found.values(), default=us), rss_mb=best["rss_mb"])
for name, value in found.items():
    print(_cluster.json.dumps({"name": f"epoch_{name}", "value": round(value, 1), "unit": "images/s",
                               "limit": round(us, 1), "ratio": round(us / value, 2)}), flush=True)
