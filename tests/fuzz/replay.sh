#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# replay.sh - what bench/fuzz has kept of each decoder's inputs.
. "$SRCDIR/tests/lib/tap.sh"
relay "$BUILDDIR/tests/fuzz/replay" "$SRCDIR/tests/fuzz/corpus"
done_testing
