#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# layers.sh - a file includes only from its own layer and those below; and that this check
# can fail, shown on planted files.
. "$SRCDIR/tests/lib/tap.sh"

# top to bottom; a file of a layer may include from its own and from those to its right
layers="launcher train engine schedule codec transport cluster device kernels base"

may_include() { # may_include FROM TO
    local seen=
    [ "$1" = "$2" ] && return 0
    for layer in $layers; do
        [ "$layer" = "$1" ] && seen=1 && continue
        [ "$layer" = "$2" ] && { [ -n "$seen" ]; return; }
    done
    return 1
}

layer_of() { # layer_of FILE, relative to the root
    case $1 in
    launcher/*) echo launcher ;;
    kernels/*) echo kernels ;;
    src/*) echo "$1" | cut -d/ -f2 ;;
    esac
}

layer_of_include() { # "codec/codec.h", "kernels.h", "launcher.h"
    case $1 in
    strait.h | build.h) ;;
    */*) echo "${1%%/*}" ;;
    kernels.h | block.h) echo kernels ;;
    launcher.h | bench.h | bench_variant.h) echo launcher ;;
    *) echo "unknown:$1" ;;
    esac
}

upward_includes() { # upward_includes ROOT
    (cd "$1" && find launcher kernels src -name '*.[ch]' | sort | while read -r file; do
        from=$(layer_of "$file")
        sed -n 's/^#include "\(.*\)".*/\1/p' "$file" | while read -r include; do
            to=$(layer_of_include "$include")
            [ -z "$to" ] || may_include "$from" "$to" || echo "$file includes $include"
        done
    done)
}

upward_includes "$SRCDIR" >out
[ ! -s out ]
ok "no include points upward"

# codecs know nothing of ranks, kernels nothing but bytes, transports nothing of schedules
(cd "$SRCDIR" && grep -nE '"(cluster|transport|schedule)/|<mpi.h>' src/codec/*.[ch]
 grep -nE '"(codec|device)/' "$SRCDIR"/src/transport/*.[ch]) >out
[ ! -s out ]
ok "codecs know no ranks, transports no codecs"

mkdir -p planted && cp -r "$SRCDIR"/{launcher,kernels,src} planted/ && chmod -R u+w planted
sed -i '1i #include "engine/engine.h"' planted/src/codec/codec.c
upward_includes planted >out
grep -q "src/codec/codec.c includes engine/engine.h" out
ok "a planted upward include is found"

# cycles within a layer: no header includes one that includes it back
(cd "$SRCDIR/src" && for a in */*.h; do
    sed -n 's/^#include "\(.*\/.*\)".*/\1/p' "$a" | while read -r b; do
        [ -f "$b" ] && grep -qF "#include \"$a\"" "$b" && echo "$a and $b include each other"
    done
done) >out
[ ! -s out ]
ok "no two headers include each other"

(cd "$SRCDIR" && find src kernels launcher tests include -name '*.[ch]' | while read -r file; do
    lines=$(wc -l <"$file")
    [ "$lines" -le 900 ] || echo "$file has $lines lines"
    awk -v f="$file" 'length > 100 { print f ":" NR " is longer than 100 columns" }' "$file"
    head -n 1 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$file has no SPDX line"
done) >out
[ ! -s out ]
ok "files keep to 900 lines of 100 columns and say their licence"

# a function longer than a screen needs its reason; none has one
(cd "$SRCDIR" && find src kernels launcher -name '*.c' | while read -r file; do
    awk -v f="$file" '/^[a-z].*\)$/ { start = NR; name = $0 }
        /^}/ { if (start && NR - start > 60) print f ":" start " " NR - start " lines: " name; start = 0 }' "$file"
done) >out
[ ! -s out ]
ok "no function is longer than 60 lines"

grep -oE '`(src|launcher|kernels|tests|configs|docs|data|scripts|bench|include)/[A-Za-z0-9_./-]*`' \
    "$SRCDIR"/docs/architecture.md "$SRCDIR"/README.md "$SRCDIR"/CONTRIBUTING.md |
    sed 's/.*:`//; s/`$//' | sort -u | while read -r path; do
    [ -e "$SRCDIR/$path" ] || echo "$path does not exist"
done >out
[ ! -s out ]
ok "every path that the documents name exists"
done_testing
