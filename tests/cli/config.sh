#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# config.sh - `strait config` on good and bad files; the reference page is the table's.
. "$SRCDIR/tests/lib/tap.sh"

for file in "$SRCDIR"/configs/*.conf; do
    check "$(basename "$file") has no errors" 0 "no errors" "$STRAIT" config check "$file"
done
check "print shows a value's line" 0 "# $SMOKE:" "$STRAIT" config print "$SMOKE"
check "print shows a default" 0 "# default" "$STRAIT" config print "$SMOKE"
check "print shows --set" 0 'codec = "topk";' "$STRAIT" config print "$SMOKE" --set comm.codec=topk
check "print shows where --set came from" 0 "# --set" "$STRAIT" config print "$SMOKE" --set=run.seed=3

"$STRAIT" config print "$SMOKE" >printed.conf && "$STRAIT" config print printed.conf >again.conf &&
    diff <(sed 's/ *#.*//' printed.conf) <(sed 's/ *#.*//' again.conf) >out
ok "what print writes reads back as the same"

cat >bad.conf <<'X'
comm = {
  codek = "int8";
  block = 3;
};
train = { epochs = "many"; };
extra = { key = 1; };
X
check "every error has its line: key" 2 "bad.conf:2: comm.codek: unknown key; did you mean comm.codec?" \
    "$STRAIT" config check bad.conf
check "every error has its line: bounds" 2 "bad.conf:3: comm.block: 3 is out of range; allowed: an integer, 8 .. 65536" \
    "$STRAIT" config check bad.conf
check "every error has its line: type" 2 "bad.conf:5: train.epochs: a string is not what it takes" \
    "$STRAIT" config check bad.conf
check "every error has its line: group" 2 "bad.conf:6: extra.key: unknown key" "$STRAIT" config check bad.conf
check "a wrong --set comes with the file's errors" 2 "--set comm.codec: \"zip\" is unknown" \
    "$STRAIT" config check bad.conf --set comm.codec=zip
printf 'comm = {\n codec = "int8"\n schedule = ;\n' >syntax.conf
check "a syntax error has its line" 2 "syntax.conf:3: " "$STRAIT" config check syntax.conf
check "a missing file is named" 2 "cannot read the configuration: none.conf: cannot open" "$STRAIT" config check none.conf
check "a folder is no file" 2 "not a plain file" "$STRAIT" config check "$tap_dir"
head -c 4096 /dev/urandom >noise.conf
check "noise is refused" 2 "noise.conf:" "$STRAIT" config check noise.conf
check "momentum is not applied twice" 2 "comm.momentum_correction: momentum would be applied twice" \
    "$STRAIT" config check "$SMOKE" --set comm.momentum_correction=0.9
check "momentum correction alone is right" 0 "no errors" \
    "$STRAIT" config check "$SMOKE" --set comm.momentum_correction=0.9 --set train.momentum=0
: >empty.conf
check "an empty file lacks data" 2 "data.path: missing" "$STRAIT" config check empty.conf

"$STRAIT" config reference | diff - "$SRCDIR/docs/configuration.md" >out
ok "docs/configuration.md is what the table says (make update-reference)"
check "a full disk is noticed" 1 "cannot write to standard output" \
    bash -c "'$STRAIT' config reference >/dev/full"
done_testing
