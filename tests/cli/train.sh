#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# train.sh - the trainer as its user sees it: learning, determinism, the run folder.
. "$SRCDIR/tests/lib/tap.sh"
short="--set train.epochs=3 --set run.dir=$tap_dir/runs --set report.progress=plain"

accuracy() { sed -n 's/^held-out accuracy: \([0-9]*\).*/\1/p' out; }
replicas() { sed -n 's/^replicas: identical (parameters \(.*\))/\1/p' out; }
losses() { sed -n 's/^epoch .* loss \([0-9.]*\) .*/\1/p' "${1:-out}"; }

for n in 1 2 3 4 7; do
    ranks $n "$STRAIT" train "$SMOKE" $short >out 2>&1
    [ $? -eq 0 ] && [ "$(accuracy)" -ge 85 ] && [ -n "$(replicas)" ] &&
        [ "$(grep -c "^epoch" out)" -eq 3 ] && [ "$(grep -cE '^ +[0-9]+  ' out)" -eq $n ]
    ok "$n ranks learn the digits and report a row each"
done

for codec in fp32 bf16 fp16 int8 topk fp8 int4 int2 onebit powersgd; do
    ranks 3 "$STRAIT" train "$SMOKE" $short --set comm.codec=$codec >out 2>&1
    [ $? -eq 0 ] && [ "$(accuracy)" -ge 80 ] && [ -n "$(replicas)" ]
    ok "3 ranks learn with $codec"
done
ranks 3 "$STRAIT" train "$SMOKE" $short --set comm.codec=topk --set comm.topk_ratio=0.01 \
    --set comm.ratio_warmup_steps=60 --set comm.clip_norm=4 --set comm.momentum_correction=0.9 \
    --set train.momentum=0 >out 2>&1
[ $? -eq 0 ] && [ "$(accuracy)" -ge 80 ] && [ -n "$(replicas)" ]
ok "3 ranks learn with topk of 1 %, its warm-up, momentum correction and clipping"
ranks 3 "$STRAIT" train "$SMOKE" $short --set comm.codec=randk --set comm.ratio_warmup_from=1 \
    --set comm.ratio_warmup_steps=60 --set comm.clip_norm=4 --set comm.momentum_correction=0.9 \
    --set train.momentum=0 >out 2>&1
[ $? -eq 0 ] && [ "$(accuracy)" -ge 80 ] && [ -n "$(replicas)" ]
ok "3 ranks learn with randk, its warm-up, momentum correction and clipping"
ranks 3 "$STRAIT" train "$SMOKE" $short >out 2>&1
best=$(replicas)
STRAIT_KERNELS=baseline ranks 3 "$STRAIT" train "$SMOKE" $short >out 2>&1
[ -n "$best" ] && [ "$(replicas)" = "$best" ] && ! grep -q STRAIT_KERNELS out
ok "plain kernels give the bits of the best"
STRAIT_KERNELS=mmx ranks 3 "$STRAIT" train "$SMOKE" $short >out 2>&1
[ "$(replicas)" = "$best" ] && [ "$(grep -c "STRAIT_KERNELS=mmx does not run" out)" -eq 3 ]
ok "kernels that do not run here get a warning from each rank"
ranks 3 "$STRAIT" train "$SMOKE" $short --set train.optimizer=adam --set train.lr=0.002 >out 2>&1
[ $? -eq 0 ] && [ "$(accuracy)" -ge 85 ]
ok "3 ranks learn with adam"

hashes=
for try in "" "" "--set comm.transport=mpi" "--set comm.bucket_mb=4 --set run.name=again"; do
    ranks 4 "$STRAIT" train "$SMOKE" $short $try >out 2>&1
    hashes="$hashes $(replicas)"
done
set -- $hashes
[ $# -eq 4 ] && [ "$1" = "$2" ] && [ "$1" = "$3" ]
ok "the same seed gives the same bits, twice and over both transports"
ranks 4 "$STRAIT" train "$SMOKE" $short --set run.seed=2 >out 2>&1
[ -n "$(replicas)" ] && [ "$(replicas)" != "$1" ]
ok "another seed gives other bits"

# N ranks with fp32 follow one rank with N times the batch, within rounding.
"$STRAIT" train "$SMOKE" $short --set comm.codec=fp32 --set train.batch=32 >one 2>&1
ranks 4 "$STRAIT" train "$SMOKE" $short --set comm.codec=fp32 --set train.batch=8 >four 2>&1
ranks 3 "$STRAIT" train "$SMOKE" $short --set comm.codec=fp32 --set train.batch=32 >three 2>&1
"$STRAIT" train "$SMOKE" $short --set comm.codec=fp32 --set train.batch=96 >one_of_three 2>&1
same_curve() {
    paste <(losses "$1") <(losses "$2") | tee out |
        awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 2e-3 * $1 + 2e-4) bad = 1 } END { exit bad || NR != 3 }'
}
same_curve one four
ok "4 ranks with fp32 follow one rank with 4 times the batch"
same_curve one_of_three three
ok "3 ranks with fp32 follow one rank with 3 times the batch, uneven last batches too"

run=$(ls -d "$tap_dir"/runs/*-again)
check "the run folder has the effective configuration" 0 "run.name" \
    bash -c "'$STRAIT' config check '$run/config.conf' && grep -o 'name = \"again\"' '$run/config.conf' && echo run.name"
python3 - "$run/metrics.jsonl" "$SRCDIR/docs/metrics.md" >out 2>&1 <<'X'
import json, re, sys
records = [json.loads(line) for line in open(sys.argv[1])]
documented = set(re.findall(r"^\| `(\w+)` \|", open(sys.argv[2]).read(), re.M))
assert len(records) == 4 * 3 + 4, len(records)
assert [r["rank"] for r in records[:4]] == [0, 1, 2, 3]
assert all(r["kind"] == "interval" for r in records[:12])
assert all(r["kind"] == "summary" for r in records[12:])
for r in records:
    assert set(r) == documented, set(r) ^ documented
    assert r["schema"] == 1 and r["samples"] > 0 and r["samples_per_s"] > 0 and r["loss"] > 0
    assert 3.5 < r["compression_ratio"] < 4.0, r["compression_ratio"]
    assert r["wire_bytes_within_node"] > 0 and r["wire_bytes_between_nodes"] == 0
    assert abs(r["step_ms_median"]) > 0 and r["step_ms_p95"] >= r["step_ms_median"]
assert sum(r["samples"] for r in records[:12]) == 3 * 1438
assert sum(r["samples"] for r in records[12:]) == 3 * 1438
X
ok "metrics.jsonl has a record per rank and interval with the documented fields"

mkdir -p here && (cd here && "$STRAIT" train "$SMOKE" --set train.epochs=1) >out 2>&1
ls here/runs/*-smoke/metrics.jsonl >/dev/null
ok "without --set run.dir the run folder is below the current one"
"$STRAIT" train "$SMOKE" $short --set report.progress=off >out 2>&1
[ $? -eq 0 ] && ! grep -q "^epoch" out
ok "report.progress = off shows no progress"
"$STRAIT" train "$SMOKE" $short --set report.progress=line >out 2>&1
[ $? -eq 0 ] && grep -q $'\r' out
ok "report.progress = line redraws"
export -f ranks
export STRAIT SMOKE short tap_dir
# script runs the command by $SHELL, and only bash knows an exported function
SHELL=$BASH script -qec 'stty cols 50; ranks 2 "$STRAIT" train "$SMOKE" $short --set report.progress=auto' /dev/null >out 2>&1 </dev/null
# a line that another redraw erases must not have wrapped
python3 - out <<'X' >>out 2>&1
import sys
redrawn = open(sys.argv[1], newline="").read().split("\r\x1b[K")[1:-1]
erased = [line for line in redrawn if "\n" not in line]
assert erased and all(0 < len(line) < 50 for line in erased), erased
X
ok "the live line keeps to the terminal's width"
"$STRAIT" train "$SMOKE" $short --set report.every=50 >out 2>&1
[ $? -eq 0 ] && [ "$(grep -c "^epoch" out)" -eq $((3 * 180 / 50 + 3)) ]
ok "report.every sets the reporting interval"
"$STRAIT" train "$SMOKE" $short --set data.holdout=0 >out 2>&1
[ $? -eq 0 ] && ! grep -q "held-out accuracy" out
ok "no held-out samples, no accuracy"

# IDX, as MNIST comes: the digits again, written in that format.
python3 - "$SRCDIR/data/digits.csv" <<'X'
import struct, sys
rows = [list(map(int, line.split(","))) for line in open(sys.argv[1])]
for name, part in (("train", rows[:1500]), ("test", rows[1500:])):
    with open(name + ".images", "wb") as f:
        f.write(struct.pack(">HBBIII", 0, 8, 3, len(part), 8, 8))
        for r in part: f.write(bytes(v * 15 for v in r[:64]))
    with open(name + ".labels", "wb") as f:
        f.write(struct.pack(">HBBI", 0, 8, 1, len(part)) + bytes(r[64] for r in part))
X
cat >idx.conf <<'X'
data = { format = "idx"; images = "train.images"; labels = "train.labels";
         test_images = "test.images"; test_labels = "test.labels"; };
train = { epochs = 3; batch = 8; lr = 0.05; };
X
ranks 2 "$STRAIT" train idx.conf >out 2>&1
[ $? -eq 0 ] && grep -q "1500 samples to train on, 297 held out" out && [ "$(accuracy)" -ge 80 ]
ok "idx files train too, relative to their configuration"
done_testing
