"""What writing checkpoints costs the training meanwhile: a model of 1 GB with its Adam slots (`--megabytes` to
change), one server, one worker; the same steps with checkpoints one after the other all the time, and without
any. `value` is steps a second with, `limit` without."""
import argparse
import os
import shutil
import tempfile

import _cluster

JOB = """
name: "large"
dataset { train_files: "%s" libsvm { num_features: %d } shuffle: false }
model { layers { dense { units: 4000 use_bias: false } } layers { dense { units: 1 use_bias: false } } }
loss { mean_squared_error {} }
optimizer { adam {} }
training { global_batch_size: 2 replicas: 1 steps: %d }
"""

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--megabytes", type=int, default=1000, help="of a checkpoint: weights and two slots")
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--every_steps", type=int, default=4)
parser.add_argument("--rounds", type=int, default=3, help="rounds; medians are printed")
args = parser.parse_args()

folder = tempfile.mkdtemp()
features = args.megabytes * 250_000 // 3 // 4000
data, job = os.path.join(folder, "large.svm"), os.path.join(folder, "job.textproto")
with open(data, "w", encoding="ascii") as f:
    f.write(f"1 1:0.5 {features}:0.25\n0 2:0.5 {features - 1}:0.25\n")
with open(job, "w", encoding="ascii") as f:
    f.write(JOB % (data, features, args.steps))

rates, written, rss = {False: [], True: []}, 0, {}
for _ in range(args.rounds):
    for keeps in rates:
        state = os.path.join(folder, "state")
        flags = (f"--state_dir={state}",) if keeps else ()
        summary = _cluster.run_job(job, 1, 1, f"checkpoint.every_steps={args.every_steps}", "checkpoint.keep=1",
                                   flags=flags)
        rates[keeps].append(summary["steps"] / summary["seconds"])
        if keeps:
            written, rss = summary["checkpoints"], summary["rss_mb"]
        shutil.rmtree(state, ignore_errors=True)
shutil.rmtree(folder)
_cluster.report(f"checkpoint_cost_{args.megabytes}MB", _cluster.median(rates[True]), "steps/s",
                _cluster.median(rates[False]), checkpoints=written, rss_mb=rss)
