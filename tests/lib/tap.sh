# SPDX-License-Identifier: Apache-2.0
# tap.sh - sourced by the test scripts: TAP from shell, and mpirun for this machine.
#
# The harness gives SRCDIR, BUILDDIR, CC, PUBLIC_CPPFLAGS and SANITIZERS (yes or no). Every script works in a folder of its own, removed at the end.
set -u
: "${SRCDIR:?run by make check}" "${BUILDDIR:?run by make check}"
STRAIT=$BUILDDIR/strait
SMOKE=$SRCDIR/configs/smoke.conf
tap_count=0
tap_dir=$(mktemp -d "${TMPDIR:-/tmp}/strait-test.XXXXXX")
trap 'rm -rf "$tap_dir"' EXIT
cd "$tap_dir" || exit 99

# As root, in a container, with more ranks than cores: all usual in CI.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
# MPI unloads its plug-ins before the leak checker looks, so what they leave cannot be told
# from leaks of ours: it looks at the unit tests only, which start no MPI.
export ASAN_OPTIONS=detect_leaks=0
# UCX intercepts memory calls, and so do sanitizers: leave that to one of them.
[ "$SANITIZERS" = no ] || export UCX_MEM_EVENTS=n

ranks() { # ranks N COMMAND... - at most two minutes
    local n=$1
    shift
    timeout -k 10 120 mpirun -q -np "$n" "$@"
}

ok() { # ok NAME - the last command decides
    local st=$?
    tap_count=$((tap_count + 1))
    if [ $st -eq 0 ]; then echo "ok $tap_count - $1"; else
        echo "not ok $tap_count - $1"
        [ ! -s out ] || sed 's/^/# /' out | head -40
    fi
}

skip() { # skip NAME WHY
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $1 # SKIP $2"
}

# check NAME EXIT PATTERN COMMAND... - exit code and a fixed string in the output
check() {
    local name=$1 code=$2 pattern=$3 got
    shift 3
    "$@" >out 2>&1 </dev/null
    got=$?
    [ $got -eq "$code" ] || echo "exit $got, expected $code" >>out
    [ $got -eq "$code" ] && { [ -z "$pattern" ] || grep -qF -e "$pattern" out; }
    ok "$name"
}

relay() { # relay COMMAND... - pass another program's TAP on under our count
    "$@" >out 2>err </dev/null
    local st=$? line
    while IFS= read -r line; do
        case $line in
        ok\ -*) tap_count=$((tap_count + 1)); echo "ok $tap_count -${line#ok -}" ;;
        not\ ok\ -*) tap_count=$((tap_count + 1)); echo "not ok $tap_count -${line#not ok -}" ;;
        esac
    done <out
    [ $st -eq 0 ] && return
    grep -vE '^(not )?ok |^1\.\.' out >>err # what libraries say, UCX for one
    sed 's/^/# /' err | head -60
    : >out
    (exit $st)
    ok "$* ends well"
}

done_testing() { echo "1..$tap_count"; }
