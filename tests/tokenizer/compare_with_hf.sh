#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs compare_with_hf.py with the Python of MUSTER_TEST_PYTHON, or skips (exit 77) with the reason.
if [ -z "${MUSTER_TEST_PYTHON:-}" ]; then
    echo "skipped: MUSTER_TEST_PYTHON does not name a Python with the package tokenizers"
    exit 77
fi
exec "$MUSTER_TEST_PYTHON" "$(dirname "$0")/compare_with_hf.py" "$1" "${MUSTER_SHARED:-$2}"
