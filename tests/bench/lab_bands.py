"""What the labs' expectations come out at for several seeds: the bands behind `expect(…, about(x, within=…))`.

    python tests/bench/lab_bands.py 07                  three full runs of lab 07, with other random numbers each
    python tests/bench/lab_bands.py 07 --quick          the same with --quick
    python tests/bench/lab_bands.py --seeds 1 2         other seeds, all labs

Seed 0 is the lab as it stands; for another seed K every generator np.random.default_rng(s) of the lab and of mini_tf
is one of (s, K) instead.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

LABS = Path(__file__).parent.parent.parent / "labs"
RUN = """
import runpy, sys
import numpy as np
lab, shift, *options = sys.argv[1:]
original = np.random.default_rng
def shifted(seed=None):
    if int(shift) == 0 or seed is None or isinstance(seed, (np.random.Generator, np.random.BitGenerator)):
        return original(seed)
    return original([*np.atleast_1d(seed).tolist(), int(shift)])
np.random.default_rng = shifted
sys.argv = [lab, *options]
sys.path.insert(0, lab.rpartition("/")[0])
runpy.run_path(lab, run_name="__main__")
"""


def expectations(lab, seed, quick):
    """The records that a lab's expect(…) leaves, for a seed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records"
        environment = os.environ | {"MINI_TF_EXPECTATIONS": str(path), "MINI_TF_LAB_FIGURES": folder}
        command = [sys.executable, "-c", RUN, str(lab), str(seed), *(["--quick"] if quick else [])]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labs", nargs="*", help="their numbers, such as 01b; all of them if none is given")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    labs = [lab for lab in sorted(LABS.glob("[01]*.py"))
            if not arguments.labs or lab.stem.split("_")[0] in arguments.labs]  # fmt: skip
    missed = 0
    for lab in labs:
        runs = [expectations(lab, seed, arguments.quick) for seed in arguments.seeds]
        print(f"\n{lab.stem}{', --quick' if arguments.quick else ''}, seeds {arguments.seeds}")
        for records in zip(*runs, strict=True):
            values = [record["value"] for record in records]
            marks = "".join(record["mark"] for record in records)
            spread = "" if isinstance(values[0], (bool, str)) else f"{np.mean(values):.5g} ± {np.ptp(values) / 2:.2g}"
            shown = "  ".join(record["measured"] for record in records)
            print(f"  {marks} {records[0]['what']:<50} {records[0]['expected']:<20} {spread:<20} {shown}", flush=True)
            missed += "✗" in marks
    print(f"\n{missed} expectations not met by some seed")


if __name__ == "__main__":
    main()
