#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage.sh - help and version everywhere; wrong use exits 2 and says one line.
. "$SRCDIR/tests/lib/tap.sh"

check "help lists the commands" 0 "train" "$STRAIT" --help
check "-h is help" 0 "Usage: strait" "$STRAIT" -h
check "the version" 0 "strait 0." "$STRAIT" --version
for command in train config info bench; do
    check "$command --help" 0 "Usage:" "$STRAIT" $command --help
    check "$command --version" 0 "strait 0." "$STRAIT" $command --version
done
check "no command" 2 "no command was given" "$STRAIT"
check "an unknown command" 2 "unknown command fly" "$STRAIT" fly
check "train without a file" 2 "no configuration FILE" "$STRAIT" train
check "train with two files" 2 "one FILE only" "$STRAIT" train a b
check "an unknown option" 2 "unknown option --fast" "$STRAIT" train a --fast
check "--set without a value" 2 "--set wants group.key=value" "$STRAIT" train a --set
check "config without an action" 2 "say check, print or reference" "$STRAIT" config
check "config with a wrong action" 2 "say check, print or reference" "$STRAIT" config chekc x
check "info takes no arguments" 2 "unknown argument x" "$STRAIT" info x
check "info tells the build and the host" 0 "UCX offers" "$STRAIT" info
check "info under mpirun tells the paths" 0 "within a node: ucx: " ranks 2 "$STRAIT" info

# A mistake of a job is said once, whatever the number of ranks, and without MPI's words.
ranks 3 "$STRAIT" train >out 2>&1
[ "$(wc -l <out)" -eq 1 ] && grep -q "no configuration FILE" out
ok "three ranks speak once"
ranks 3 "$STRAIT" --help >out 2>&1 && [ "$(grep -c Usage: out)" -eq 1 ]
ok "three ranks help once"

man -l "$SRCDIR/docs/strait.1" >out 2>/dev/null || mandoc "$SRCDIR/docs/strait.1" >out 2>&1 ||
    cp "$SRCDIR/docs/strait.1" out
for command in train config info bench; do grep -q "$command" out || break; done
ok "the manual page knows every command"
done_testing
