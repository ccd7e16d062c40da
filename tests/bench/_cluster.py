"""Runs a job on a local cluster of real processes, and the peers beside it. Not run by itself."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

BIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bazel-bin")


def arguments(description):
    """Flags of every script that runs peers. A peer whose interpreter is missing is left out, and said so."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=3, help="rounds; medians are printed")
    parser.add_argument("--peers", default="../shared/peers", help="folder of the peer scripts")
    parser.add_argument("--torch", default=os.path.expanduser("~/peers-torch/bin/python"),
                        help="Python with PyTorch")
    parser.add_argument("--tf", default=os.path.expanduser("~/peers-tf/bin/python"),
                        help="Python with TensorFlow")
    parser.add_argument("--no-peers", action="store_true", help="measure us alone")
    return parser


def run_job(job, servers, workers, *sets, threads=1, standbys=0, flags=()):
    """The job's summary, with `rss_mb` by role (the largest of a role) and `cpu_s` of all processes. `standbys`
    is how many more server processes there are; `flags` are the coordinator's."""
    folder = tempfile.mkdtemp()
    summary = os.path.join(folder, "summary.json")
    quiet = dict(stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
    coordinator = subprocess.Popen(
        [f"{BIN}/coordinator/coordinator", f"--job={job}", f"--servers={servers}",
         f"--min_workers={workers}", f"--summary={summary}", *flags, *(f"--set={s}" for s in sets)],
        stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    line = coordinator.stdout.readline()
    if not line.startswith("listening on "):
        sys.exit(f"the coordinator did not start: {line}")
    address = line.split()[-1]
    procs = [("coordinator", coordinator)]
    for _ in range(servers + standbys):
        procs.append(("server", subprocess.Popen(
            [f"{BIN}/ps_server/ps_server", f"--coordinator={address}"], stdout=subprocess.DEVNULL, **quiet)))
    for _ in range(workers):
        procs.append(("worker", subprocess.Popen(
            [f"{BIN}/worker/worker", f"--coordinator={address}", f"--threads={threads}"],
            stdout=subprocess.DEVNULL, **quiet)))
    rss, cpu = {}, 0.0
    for role, proc in procs:
        _, status, usage = os.wait4(proc.pid, 0)
        proc.returncode = os.waitstatus_to_exitcode(status)
        if proc.returncode != 0:
            sys.exit(f"a {role} ended with status {proc.returncode}")
        rss[role] = max(rss.get(role, 0), usage.ru_maxrss // 1024)
        cpu += usage.ru_utime + usage.ru_stime
    with open(summary, encoding="utf-8") as f:
        out = json.load(f)
    out.update(rss_mb=rss, cpu_s=round(cpu, 2))
    return out


def run_peer(args, kind, script, *extra):
    """The JSON line of a peer script, or None when it cannot run here."""
    python = args.torch if kind == "torch" else args.tf
    path = os.path.join(args.peers, script)
    if args.no_peers or not os.path.exists(python) or not os.path.exists(path):
        return None
    out = subprocess.run([python, script, *extra, "--timeout", "120"], cwd=args.peers, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    result = json.loads(out.stdout.splitlines()[-1])
    if "steps_s" not in result:
        print(f"{script} {' '.join(extra)} failed: {result.get('last_lines')}", file=sys.stderr)
        return None
    return result


def median(values):
    values = sorted(values)
    return values[len(values) // 2]


def report(name, value, unit, limit, **more):
    """`ratio` is value to limit; above 1 we are faster than the limit named."""
    print(json.dumps({"name": name, "value": round(value, 3), "unit": unit, "limit": round(limit, 3),
                      "ratio": round(value / limit, 3) if limit else None, **more}), flush=True)
