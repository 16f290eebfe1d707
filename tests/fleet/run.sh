#!/usr/bin/env bash
# A mount under programs that monitor many hosts: `sudo tests/fleet/run.sh [--all]`.
#
# Prometheus scrapes a mount with the files of dist/prometheus. Every expression of the Grafana
# dashboard and every recorded figure must have data. With --all, OpenTelemetry's collector, built
# here from Go modules (collector/), receives the counters of `--otlp`. If PARCA is set, Parca
# scrapes profiles with the file of dist/parca.
#
# OGIVE    the program (default: target/release/ogive of this tree)
# OTELCOL  a collector that is built already
# PARCA    Parca; no package and no module proxy has it: build it from its sources
#
# Exit code 77: nothing can run here. Lines "skipped: ..." list other missing parts.
set -euo pipefail
[ -z "${OGIVE:-}" ] || OGIVE="$(realpath "$OGIVE")"
cd "$(dirname "${BASH_SOURCE[0]}")"

source ../program.bash
command -v python3 >/dev/null || skip 'no python3 on this machine'
command -v prometheus >/dev/null || skip 'no Prometheus on this machine (Debian: prometheus)'

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
if [ "${1:-}" = --all ] && [ -z "${OTELCOL:-}" ]; then
    if ! command -v go >/dev/null; then
        printf 'skipped: the collector: no go to build it\n'
    elif (cd collector && nice go build -o "$work/collector" .); then
        OTELCOL="$work/collector"
    else
        printf 'skipped: the collector: its modules cannot be fetched\n'
    fi
fi
[ -n "${OTELCOL:-}" ] || printf 'skipped: OpenTelemetry (--all builds a collector)\n'
[ -n "${PARCA:-}" ] || printf 'skipped: Parca (PARCA is not set)\n'
export OGIVE OTELCOL="${OTELCOL:-}" PARCA="${PARCA:-}"
python3 fleet.py "$work"
