#!/bin/bash
. "$SRCDIR/tests/lib/tap.sh"
done_testing
