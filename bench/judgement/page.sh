#!/bin/sh
# Writes the summaries of table.md and synthetic.md into docs/policy.md, between its markers.
# Usage: bench/judgement/page.sh [results folder]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
results=${1:-$here/../results/judgement}
page=$here/../../docs/policy.md
for table in table synthetic; do
    sed -n '/^| policy/,/^$/p' "$results/$table.md" | sed '/^$/d' > "$results/summary"
    awk -v begin="<!-- $table -->" -v end="<!-- /$table -->" -v file="$results/summary" '
        $0 == end { inside = 0 }
        !inside { print }
        $0 == begin { inside = 1; while ((getline line < file) > 0) print line }
    ' "$page" > "$results/page"
    cp "$results/page" "$page"
    rm "$results/summary" "$results/page"
done
