#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# autogen.sh - make ./configure in a fresh clone.
set -eu
cd "$(dirname "$0")"
mkdir -p m4
autoreconf -if
