#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the tests that are given on random arrays scored by scikit-learn and scipy, or skips (exit 77) with the reason.
if [ -z "${MUSTER_TEST_PYTHON:-}" ] || ! "$MUSTER_TEST_PYTHON" -c 'import sklearn, scipy' 2>/dev/null; then
    echo "skipped: MUSTER_TEST_PYTHON does not name a Python with the packages scikit-learn and scipy"
    exit 77
fi
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
for seed in 2 3; do
    "$MUSTER_TEST_PYTHON" "$(dirname "$0")/make_metric_vectors.py" "$folder/vectors.json" $seed 40 || exit 1
    for test in "$@"; do
        MUSTER_METRIC_VECTORS="$folder/vectors.json" "$test" -silent || exit 1
    done
done
