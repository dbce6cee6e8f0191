#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench.sh - the benchmarks run, their CSV and JSON can be read, wrong use is said once.
. "$SRCDIR/tests/lib/tap.sh"

for name in allreduce codec p2p; do
    check "$name --help" 0 "Usage:" "$STRAIT" bench $name --help
    check "$name: an unknown option" 2 "unknown option --fast" "$STRAIT" bench $name --fast
    check "$name: a wrong format" 2 "--format takes text, csv or json" \
        "$STRAIT" bench $name --format xml
    check "$name: an option without its value" 2 "--repeat wants a value" \
        "$STRAIT" bench $name --repeat
    check "$name: no repeats" 2 "--repeat takes an integer" "$STRAIT" bench $name --repeat 0
done
check "bench without a name" 2 "say allreduce, codec or p2p" "$STRAIT" bench
check "p2p with one rank" 2 "mpirun -np 2" "$STRAIT" bench p2p

wrong() { # wrong PATTERN OPTION... - three ranks say it in one line, with exit code 2
    local pattern=$1 st
    shift
    ranks 3 "$STRAIT" bench allreduce "$@" >out 2>&1
    st=$?
    [ $st -eq 2 ] && [ "$(wc -l <out)" -eq 1 ] && grep -qF -e "$pattern" out
    ok "allreduce $*"
}
wrong "unknown codec int9" --codec int9
wrong "fp32 takes no parameter" --codec fp32:3
wrong "comm.topk_ratio" --codec topk:7
wrong "unknown schedule tree" --schedule sra,tree
wrong "unknown transport rdma" --transport rdma
wrong "1Q is no size" --sizes 1Q
wrong "8M:4M is no size" --sizes 8M:4M
wrong "--tensors takes an integer" --tensors resnet50
wrong "leave --sizes out" --gradients gpt2 --sizes 4K
wrong "leave --tensors out" --gradients gpt2 --tensors 4
wrong "--compute takes milliseconds" --compute fast
wrong "--link-rate takes a rate" --link-rate fast
wrong "use --codec" --set comm.codec=int8
wrong "comm.bukcet_mb" --set comm.bukcet_mb=1
wrong "unknown option --fast" --fast
check "a file of values that is not there" 1 "nowhere: cannot be read" \
    ranks 2 "$STRAIT" bench allreduce --values nowhere
check "a model that nobody knows" 1 "resnet51 is neither resnet50, bert-large nor gpt2" \
    ranks 2 "$STRAIT" bench allreduce --gradients resnet51

# columns: size count codec schedule time_ms algbw busbw wire_bytes ratio percent error ok
# node_bytes cpu_ms residual_mib peak_mib
ranks 3 "$STRAIT" bench allreduce --codec fp32,int8:64,topk:0.01 --schedule all \
    --sizes 4K:64K:16 --repeat 3 --format csv --cpu --link-rate 1gbit >out 2>&1
ok "three ranks, three codecs, all schedules"
grep -v '^#' out >rows
[ "$(head -n 1 rows)" = \
    size,count,codec,schedule,time_ms,algbw_gbs,busbw_gbs,wire_bytes,ratio,wire_percent,error,ok,$(
    )node_bytes,cpu_ms,residual_mib,peak_mib ]
ok "the CSV names its columns"
awk -F, 'NR > 1 { n++; if (NF != 16 || $12 != "yes" || $5 <= 0) exit 1 } END { exit n != 32 }' rows
ok "a row for each, and MPI's for each size, all as they should be"
awk -F, '$3 == "mpi" { if ($8 != "" || $9 != "") exit 1; n++ } END { exit n != 2 }' rows
ok "bytes that are not known are empty"
# 2(N-1)/N of 64 KiB in fp32, four headers of 40 bytes
awk -F, '$1 == 65536 && $3 == "fp32" && $4 == "sra" { n = $8 }
    END { exit n < 87000 || n > 88000 }' rows
ok "fp32 sends what an uncompressed exchange must"
awk -F, '$1 == 65536 && $3 == "topk:0.01" && $4 == "sra" { r = $9 }
    END { exit r < 65 || r > 78 }' rows # 4 bytes and 8 bits, and headers
ok "topk:0.01 sends 5 bytes for one element in a hundred"
grep -q '^# cpu_user_s_rank2 ' out && grep -q '^# peak_memory_mib ' out &&
    grep -q '^# peak_mib_rank2 ' out && grep -q '^# link_rate told' out
ok "settings first, memory and processor time at the end"

ranks 2 "$STRAIT" bench allreduce --codec int8 --sizes 100K --tensors 7 --repeat 1 --warmup 0 \
    --transport mpi --set comm.bucket_mb=0.01 --format json 2>err >out &&
    python3 -m json.tool out >/dev/null && grep -q '"ok":.*"yes"' out
ok "JSON, several tensors, the mpi transport"

# 4 bytes an element in two rows, and as much for the half that this rank owns
ranks 2 "$STRAIT" bench allreduce --codec int8,fp32 --sizes 64M --repeat 1 --no-mpi \
    --format csv >out 2>&1
awk -F, '$3 == "int8" { lossy = $15; peak = $16 } $3 == "fp32" { exact = $15 }
    END { exit !(lossy == 192 && exact == 0 && peak > 192 && peak < 240) }' out
ok "residuals and the peak of memory"

ranks 2 "$STRAIT" bench allreduce --codec int8 --sizes 1M --tensors 16 --repeat 3 --no-mpi \
    --compute 100 --format csv >out 2>&1
awk -F, '/^[0-9]/ { n++; if (NF != 20 || $17 != 100 || $18 < 100 || $20 < 1) exit 1 }
    END { exit n != 1 }' out
ok "a step is no shorter than its backward pass"
ranks 2 "$STRAIT" bench allreduce --codec int8 --sizes 1M --tensors 4 --repeat 1 --no-mpi \
    --compute 200 --busy --format csv >out 2>&1
awk -F, '/^[0-9]/ { n++; if ($18 < 200 || $19 < 200) exit 1 } END { exit n != 1 }' out
ok "a busy pass takes processor time"
ranks 2 "$STRAIT" bench allreduce --codec int8 --sizes 4M --tensors 4 --repeat 1 --no-mpi \
    --compute same --format csv >out 2>&1
awk -F, '/^[0-9]/ { n++; if ($17 != $5) exit 1 } END { exit n != 1 }' out
ok "a pass as long as the exchange"

# each model's elements and tensors; the wire carries a header for each bucket
for model in resnet50:25557032 gpt2:124439808; do
    ranks 2 "$STRAIT" bench allreduce --codec fp16 --gradients ${model%:*} --repeat 1 --warmup 0 \
        --no-mpi --format csv >out 2>&1
    grep -q "^$((${model#*:} * 4)),${model#*:},fp16,.*,yes," out
    ok "the tensors of ${model%:*}"
done
printf '# two tensors\nconv1 64 3 7 7 # the first\n\nbn1\t64\n' >shapes
ranks 2 "$STRAIT" bench allreduce --codec int8 --gradients shapes --repeat 1 --format csv >out 2>&1
grep -q "^37888,9472,int8,.*,yes," out
ok "tensors from a file"
for bad in "conv1" "conv1 64 x" "conv1 -3" "conv1 0" "c 1 1 1 1 1 1 1 1 1" "c 65536 65536" \
    "c 99999999999999999999"; do
    printf 'bn1 64\n%s\n' "$bad" >shapes
    check "no tensor: $bad" 1 "shapes:2: no tensor" \
        ranks 2 "$STRAIT" bench allreduce --gradients shapes
done
printf '# nothing\n' >shapes
check "a file without tensors" 1 "shapes: lists no tensor" \
    ranks 2 "$STRAIT" bench allreduce --gradients shapes

head -c 40000 "$SRCDIR/data/digits.csv" | tr -c 'a-z' '?' >values # 0x3f3f3f3f is 0.747
ranks 2 "$STRAIT" bench allreduce --codec bf16 --sizes 64K --repeat 1 --values values >out 2>&1
ok "values from a file"
head -c 4096 /dev/zero | tr '\0' '\377' >values
check "values that are not finite" 1 "not finite" \
    ranks 2 "$STRAIT" bench allreduce --codec bf16 --sizes 4K --repeat 1 --values values

"$STRAIT" bench codec --size 1M --repeat 1 --format csv >out 2>&1 &&
    awk -F, 'NR > 1 && ($3 <= 0 || $6 <= 0) { exit 1 } END { exit NR < 5 }' out
ok "codec: a row for every codec"
"$STRAIT" bench codec --size 300K --codec int8:64 --repeat 2 --format json >out 2>err &&
    python3 -m json.tool out >/dev/null
ok "codec: JSON"
"$STRAIT" bench codec --size 300K --codec int8 --repeat 1 --set comm.block=8 --format csv >out 2>&1 &&
    [ "$(sed -n 's/^int8,\([0-9]*\),.*/\1/p' out)" -eq 115200 ] # 76800 codes, 9600 scales
ok "codec: --set comm.block"
check "codec: --set of what is not there" 2 "comm.rounding" \
    "$STRAIT" bench codec --set comm.rounding=up
check "codec: factors are of matrices" 2 "whole matrices" "$STRAIT" bench codec --codec powersgd
ranks 2 "$STRAIT" bench allreduce --codec powersgd:2 --sizes 64K --repeat 1 --no-mpi \
    --format csv >out 2>&1 &&
    # 128 x 128: 2 columns of 128 in 1 tile, twice; of each message 1 to the owner, 1 back
    grep -q "^65536,16384,powersgd:2,sra,[^,]*,[^,]*,[^,]*,2208," out
ok "allreduce: powersgd sends two factors"
ranks 2 "$STRAIT" bench allreduce --codec fp8,int8,int4 --sizes 64K --repeat 1 --no-mpi \
    --set comm.rounding=stochastic >out 2>&1
ok "allreduce: rounding by chance"

ranks 3 "$STRAIT" bench p2p --sizes 4:64K:16 --repeat 2 --format csv >out 2>&1 &&
    [ "$(head -n 1 out)" = size,lat_us_1,gbs_1,lat_us_2,gbs_2 ] &&
    awk -F, 'NR > 1 && ($2 <= 0 || $5 < 0) { exit 1 } END { exit NR != 5 }' out
ok "p2p: columns for each peer"
done_testing
