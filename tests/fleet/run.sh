#!/usr/bin/env bash
# A mount in the programs that watch many: `sudo tests/fleet/run.sh [--all]`.
#
# Prometheus scrapes a mount by dist/prometheus, and every expression of the Grafana dashboard and
# every recorded figure must have data. With --all, besides: OpenTelemetry's collector, built here
# of Go modules (collector/), is sent the counters of `--otlp`; and Parca, if PARCA is its program,
# scrapes profiles by dist/parca.
#
# OGIVE    the program (default: target/release/ogive of this tree)
# OTELCOL  the collector, if it is built already
# PARCA    Parca; no package and no module proxy has it: build it from its sources
#
# Exit code 77: nothing of it can run here. What else is left out is said.
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
        printf 'skipped: the collector, for there is no go to build it\n'
    elif (cd collector && nice go build -o "$work/collector" .); then
        OTELCOL="$work/collector"
    else
        printf 'skipped: the collector, for its modules cannot be had\n'
    fi
fi
[ -n "${OTELCOL:-}" ] || printf 'skipped: OpenTelemetry (--all builds a collector)\n'
[ -n "${PARCA:-}" ] || printf 'skipped: Parca (PARCA names no program)\n'
export OGIVE OTELCOL="${OTELCOL:-}" PARCA="${PARCA:-}"
python3 fleet.py "$work"
