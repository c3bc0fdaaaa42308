#!/bin/bash
# On a machine with a GPU, in the repository's root:  bash gpu_run.sh [check|tests|bench|page|more|train|gradcheck …]
# Logs go to $OUT. About four minutes: check tests; as many again: bench page; five: more train gradcheck.
export PYTHONPATH=$PWD PYTHONUNBUFFERED=1 OUT=${OUT:-/tmp/out} OPENBLAS_NUM_THREADS=4 CUPY_CACHE_DIR=/tmp/cupy
mkdir -p "$OUT"; start=$SECONDS
took() { echo "--- $1: $((SECONDS - start)) s since the start"; }

check() {
python3 - <<'PY' 2>&1 | tee "$OUT/check.log"
import time, sys
t = time.time()
import numpy, scipy, cupy, torch, mini_tf
from mini_tf.kernels.gpu import launching
print(sys.version.split()[0], "numpy", numpy.__version__, "cupy", cupy.__version__, "torch", torch.__version__)
print(torch.cuda.get_device_name(0), mini_tf.__file__)
for name in ("numba", "typer", "rich", "safetensors", "jinja2", "threadpoolctl", "pytest", "xdist", "hypothesis"):
    try: __import__(name)
    except Exception as e: print("missing:", name, e)
launching._kernel("adam"); launching._kernel("layer_norm"); cupy.cuda.Device().synchronize()
print(f"kernels compiled after {time.time() - t:.1f} s")
PY
took check; }

tests() {
files=$(grep -rlE "mark\.gpu|to_gpu" tests --include=test_*.py | sort)
timeout 200 python3 -m pytest -q -n 8 --maxprocesses 8 --dist load --maxfail 40 --durations 10 -m gpu -p no:cacheprovider $files > "$OUT/tests.log" 2>&1
grep -E "^(FAILED|ERROR|E  )" "$OUT/tests.log" | cut -c1-220 | head -60; tail -2 "$OUT/tests.log"; took tests; }

one() { timeout "$1" python3 tests/bench/training_step.py --device gpu --peer torch "${@:2}" > "$OUT/bench.part" 2>&1
  rc=$?; grep -v Warning "$OUT/bench.part" | cut -c1-150 | tee -a "$OUT/bench.log"; rm -f "$OUT/bench.part"
  [ $rc = 0 ] || echo "rc $rc"; took "bench ${*:2}"; }

bench() {
one 100 --preset quick --eager                # the first: CuPy compiles what the formulas need
one 45 --preset gpt --eager --profile
one 45 --preset lab --eager
one 50 --preset translate --eager --profile
one 40 --preset classify --eager; }

more() {                                     # compiled; takes 30 to 60 s each
for preset in quick gpt lab; do one 100 --preset $preset; done
timeout 60 python3 - <<'PY' 2>&1 | tee "$OUT/tf32.log"
import sys; sys.path.insert(0, "tests/bench")
import on_gpu
from mini_tf import gpu
gpu.use_tf32(); print("TF32:"); on_gpu.AGREED = 0.02
for preset in ("gpt", "lab"): on_gpu.compare(preset)
PY
took more; }

page() { timeout 60 python3 tests/bench/one_formula.py 2>&1 | tee "$OUT/page.log"; took page; }

train() {                                    # the whole way of mini-tf train, on words of this repository
cat labs/*.md README.md mini_tf/gradcheck/*.md > /tmp/words.txt
for device in gpu cpu; do
  timeout 100 python3 -m mini_tf train --preset gpt --steps 120 --corpus /tmp/words.txt --device $device \
    --run /tmp/run-$device > "$OUT/train-$device.log" 2>&1 || echo "rc $?"
  grep -E "step|error|Error|words/s|test" "$OUT/train-$device.log" | tail -5
  python3 -c "import json; r = json.load(open('/tmp/run-$device/results.json')); print('$device', r['training_seconds'], 's', r['words_per_second'], 'words/s', r['validation'], r['test'])"
done
timeout 60 python3 -m mini_tf generate /tmp/run-gpu --words 60 --device gpu 2>&1 | tail -6; took train; }

gradcheck() { timeout 120 python3 -m mini_tf gradcheck 2>&1 | tail -6; took gradcheck; }

for part in ${@:-check tests bench page more}; do $part; done
