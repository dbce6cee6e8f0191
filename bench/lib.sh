# SPDX-License-Identifier: Apache-2.0
# lib.sh - sourced by scripts of this folder: the program under test, medians, and bars. A
# script sets `usage` before it calls bench_start.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
name=$(basename "$0")
missed=0
# more ranks than cores, any core, and root too
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

die() { echo "$name: $*" >&2; exit 2; }

help_if_asked() { # help_if_asked ARGUMENT...
    case ${1:-} in
    -h | --help) echo "$usage"; exit 0 ;;
    esac
}

# The program goes to $strait, a folder for results to $work, until the end.
bench_start() {
    strait=${STRAIT:-}
    [ -n "$strait" ] || for strait in ./strait "$root/build/strait"; do
        [ ! -x "$strait" ] || break
    done
    [ -x "$strait" ] || die "no program $strait: build it, or name it in STRAIT"
    strait=$(readlink -f "$strait")
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT TERM
}

on_host() { # on_host RANKS ARGUMENT...
    local ranks=$1
    shift
    mpirun -q -np "$ranks" --oversubscribe --bind-to none "$strait" "$@"
}

cluster_up() { # cluster_up NODES RATE - down again at the end
    [ "$(id -u)" -eq 0 ] || die "nodes need root: run it with sudo"
    trap '"$root/scripts/netcluster" down; rm -rf "$work"' EXIT
    "$root/scripts/netcluster" up "$1" "$2" >/dev/null
}

on_nodes() { # on_nodes RANKS ARGUMENT... - on the cluster that is up
    local ranks=$1
    shift
    "$root/scripts/netcluster" mpirun -np "$ranks" -- "$strait" "$@"
}

# columns NAME... - of `strait bench --format csv` on standard input: a line for each row, with
# these columns and a blank between two; - where a row has no value
columns() {
    awk -F, -v names="$*" '
        /^#/ { next }
        !headed { for (i = 1; i <= NF; i++) at[$i] = i; headed = 1; count = split(names, name, " ")
                  for (i = 1; i <= count; i++) if (!(name[i] in at)) {
                      print "there is no column " name[i] >"/dev/stderr"; exit 1 }
                  next }
        { for (i = 1; i <= count; i++) {
              value = $at[name[i]]
              printf "%s%s", value == "" ? "-" : value, i < count ? " " : "\n" } }'
}

# median FILE KEY... - of the last word of the lines that begin with these words
median() {
    local file=$1
    shift
    awk -v key="$* " 'index($0, key) == 1 && $NF != "-" { print $NF }' "$file" | sort -g | awk '
        { v[NR] = $1 }
        END { if (NR == 0) exit 1; print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }' ||
        die "no measurement of $*"
}

compute() { # compute FORMAT EXPRESSION - in awk's arithmetic
    awk "BEGIN { printf \"$1\", ($2) }"
}

# bar WHAT VALUE at-least|at-most|more-than NEED [REMARK] - print it; a miss goes to $missed
bar() {
    local test
    [[ $2 =~ ^[0-9.eE+-]+$ ]] || die "no measurement of $1" # its subshell died
    case $3 in
    at-least) test=">=" ;;
    at-most) test="<=" ;;
    more-than) test=">" ;;
    *) die "bar wants at-least, at-most or more-than, not $3" ;;
    esac
    echo "bar: $1: $2 (needs ${3/-/ } $4)${5:+; $5}"
    awk -v value="$2" -v need="$4" "BEGIN { exit !(value $test need) }" && return
    missed=1
}
