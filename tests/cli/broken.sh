#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# broken.sh - broken input and broken machines: one clear message, a non-zero exit of
# every rank, no hang.
. "$SRCDIR/tests/lib/tap.sh"
short="--set train.epochs=2 --set run.dir=$tap_dir/runs"

# refuse NAME EXIT PATTERN N ARGUMENTS... - the message comes once
refuse() {
    local name=$1 code=$2 pattern=$3 n=$4
    shift 4
    ranks "$n" "$STRAIT" train "$@" >out 2>&1 </dev/null
    local got=$?
    [ $got -eq "$code" ] || echo "exit $got, expected $code" >>out
    [ $got -eq "$code" ] && [ "$(grep -cF -e "$pattern" out)" -eq 1 ] && ! grep -q MPI_ABORT out
    ok "$name"
}

refuse "a missing configuration" 2 "cannot read the configuration: none.conf" 3 none.conf
refuse "an unknown key" 2 "--set comm.codek: unknown key; did you mean comm.codec?" 3 "$SMOKE" --set comm.codek=1
refuse "a wrong type" 2 "train.epochs: \"many\" is not what it takes" 3 "$SMOKE" --set train.epochs=many
refuse "a number out of range" 2 "comm.topk_ratio: 7 is out of range" 3 "$SMOKE" --set comm.topk_ratio=7
refuse "a missing data file" 1 "none.csv: cannot open: No such file" 3 "$SMOKE" $short --set data.path=none.csv
: >empty.csv
refuse "an empty data set" 1 "empty.csv: the file is empty" 3 "$SMOKE" $short --set data.path=empty.csv
head -c 100000 "$SRCDIR/data/digits.csv" >cut.csv
refuse "a data file cut short" 1 "is the file cut short?" 3 "$SMOKE" $short --set data.path=cut.csv
head -n 5 "$SRCDIR/data/digits.csv" >few.csv
few="$short --set data.path=few.csv --set data.holdout=0"
refuse "fewer samples than ranks" 1 "5 training samples are fewer than 7 ranks" 7 "$SMOKE" $few
ranks 5 "$STRAIT" train "$SMOKE" $few >out 2>&1
ok "as many samples as ranks will do"
printf '1,2,0\n3,4,0\n5,6,0\n' >one.csv
refuse "one class only" 1 "at least 2 are needed" 2 "$SMOKE" $short --set data.path=one.csv --set data.holdout=0
printf '\x1f\x8b\x08\x00\x00\x00\x00\x00' >x.gz
refuse "packed idx files" 1 "unpack it first" 2 "$SMOKE" $short --set data.format=idx --set data.images=x.gz --set data.labels=x.gz
: >file
refuse "a file in the run folder's place" 1 "cannot create the run folder" 3 "$SMOKE" --set run.dir=file/runs
refuse "a learning rate that blows up is skipped, not crashed" 0 "skipped steps:" 2 "$SMOKE" $short --set train.lr=1e6 --set train.epochs=1
refuse "a training that has diverged ends" 1 "the last 100 steps were all skipped" 3 "$SMOKE" --set train.epochs=20 --set train.lr=1e6
refuse "or stops the job, when told so" 1 "a gradient is not finite on some rank" 3 "$SMOKE" $short --set train.lr=1e6 --set comm.nonfinite=stop

if [ "$(id -u)" -eq 0 ] && mkdir -p tiny && mount -t tmpfs -o size=16k tmpfs tiny 2>/dev/null; then
    ranks 4 "$STRAIT" train "$SMOKE" --set run.dir="$tap_dir/tiny" --set report.every=1 >out 2>&1
    got=$?
    tail -qc 1 tiny/*/metrics.jsonl | grep -q . && got=half # only whole records stay
    umount tiny
    [ "$got" = 1 ] && [ "$(grep -c "metrics.jsonl: cannot write: No space left on device" out)" -eq 1 ] &&
        ! grep -q MPI_ABORT out
    ok "a full disk under the run folder"
else
    skip "a full disk under the run folder" "mounting a small file system needs root"
fi
# A rank that is stopped: the others name it within fault.timeout_s. mpirun's pid file
# does not say which process is which rank, so ask the processes themselves.
rank_pid() { # rank_pid RANK - the process of this test's job with that rank
    local pid
    for pid in $(pgrep -f "strait train .*$tap_dir"); do
        tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$1" &&
            echo "$pid" && return
    done
}
start_long_job() {
    ranks 3 "$STRAIT" train "$SMOKE" --set run.dir="$tap_dir/runs" --set train.epochs=100000 \
        --set fault.timeout_s=2 "$@" >out 2>&1 &
    job=$!
    for _ in $(seq 200); do
        grep -q "^epoch 2/" out && break
        sleep 0.1
    done
}
for transport in ucx mpi; do
    start_long_job --set comm.transport=$transport
    kill -STOP "$(rank_pid 1)"
    # a stopped process cannot be aborted politely: wake it once the others have spoken
    (sleep 12; pkill -CONT -f "strait train .*$tap_dir") &
    wait $job
    got=$?
    [ $got -ne 0 ] && [ $got -ne 124 ] && grep -qE "waiting for .*rank 1 on " out
    ok "a stopped rank is named by the others ($transport)"
    pkill -KILL -f "strait train .*$tap_dir"
    wait
done
start_long_job --set report.every=1
prlimit --pid "$(rank_pid 0)" --fsize=4096
wait $job
[ $? -eq 1 ] && grep -q "metrics.jsonl: cannot write: File too large" out
ok "a file-size limit is an error, not a signal"
start_long_job
kill -KILL "$(rank_pid 2)"
wait $job
[ $? -ne 0 ] && [ $? -ne 124 ]
ok "a killed rank ends the job"
done_testing
