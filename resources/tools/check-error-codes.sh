#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails when a code of the sources is missing in docs/errors.md, or one listed there is not in the sources.
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}"

folders=()
for folder in backend app ui; do
    [ ! -d "$folder" ] || folders+=("$folder")
done
used=$(grep -rhoE --include='*.cpp' --include='*.h' '"[EW]-[A-Z]+-[0-9]{3}"' "${folders[@]}" | tr -d '"' | sort -u)
listed=$(grep -oE '^\| [EW]-[A-Z]+-[0-9]{3} \|' docs/errors.md | tr -d '| ' | sort)

status=0
report() {
    [ -z "$2" ] && return
    printf '%s:\n%s\n' "$1" "$2" >&2
    status=1
}
report "in the sources, but not in docs/errors.md" "$(comm -23 <(echo "$used") <(echo "$listed" | uniq))"
report "in docs/errors.md, but not in the sources" "$(comm -13 <(echo "$used") <(echo "$listed" | uniq))"
report "twice in docs/errors.md" "$(echo "$listed" | uniq -d)"
[ $status -ne 0 ] || echo "$(echo "$used" | wc -l) codes are listed"
exit $status
