#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# replay.sh TARGET KIND ARGS...: builds the seeds of that kind and runs the target over them.
set -eu
target=$1 kind=$2
shift 2
seeds=$(mktemp -d)
trap 'rm -rf "$seeds"' EXIT
python3 "$(dirname "$0")/seeds.py" "$kind" "$seeds"
"$target" "$@" "$seeds"
