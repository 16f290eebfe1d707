#!/usr/bin/env bash
# A PostgreSQL cluster on the mount, run by the user postgres. Many clients write; then the server
# is killed once, and the mount below it twice. After each kill, all rows with a confirmed commit
# exist, accounts and history add up, and amcheck finds no fault in any table or index. At the end,
# pg_checksums reads every page in the source.
# shellcheck source=tests/mount/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite postgresql 'a database server killed, and the mount killed below it'
needs_ogive
need setpriv

programs="$(find /usr/lib/postgresql/*/bin -name initdb -printf '%h\n' 2>/dev/null |
    sort -V | tail -n 1)"
[ -n "$programs" ] || skip 'no PostgreSQL on this machine (Debian package postgresql)'
PATH="$programs:$PATH"
need postgres psql pgbench pg_amcheck pg_checksums
id postgres >/dev/null 2>&1 || skip 'no user postgres on this machine'

# At most this many rows are committed before a kill, plus 50.
readonly ROWS="${OGIVE_POSTGRESQL_ROWS:-600}"
# Seeds bash's random numbers.
RANDOM="$(seed_of 1)"
readonly CLIENTS=4
data="$WORK/view/data"
first=1
server=''
writer=''
bench=''

as_postgres() {
    setpriv --reuid postgres --regid postgres --clear-groups -- "$@"
}

sql() {
    as_postgres psql -X -q -A -t -v ON_ERROR_STOP=1 -h "$WORK/run" -d postgres "$@"
}

# stop_at_exit: kills the server whenever the suite ends.
stop_at_exit() {
    local code=$?
    set +e
    kill_server
    (exit "$code")
    cleanup
}
trap stop_at_exit EXIT

# kill_server: kills the server and its child processes.
kill_server() {
    local children child
    [ -n "$server" ] || return 0
    children="$(pgrep -P "$server" || true)"
    kill -9 "$server" 2>/dev/null || true
    end_of 60 'the end of the server' "$server" || true
    for child in $children; do
        kill -9 "$child" 2>/dev/null || true
        wait_gone "$child" || fail "process $child of the server does not end"
    done
    server=''
}

answers_or_gone() {
    sql -c 'SELECT 1' || ! kill -0 "$server"
}

# start_server: returns when the server answers, which is after its recovery.
start_server() {
    (cd "$WORK" && exec setpriv --reuid postgres --regid postgres --clear-groups -- \
        postgres -D "$data" >>"$WORK/server.log" 2>&1) &
    server=$!
    within_seconds 120 answers_or_gone || true
    ! sql -c 'SELECT 1' >/dev/null 2>&1 || return 0
    tail -n 20 "$WORK/server.log"
    fail 'the server does not start'
}

# begin_load: starts pgbench, and a client that records each row whose commit the server confirmed.
# Returns after a random number of rows.
begin_load() {
    as_postgres pgbench -n -h "$WORK/run" -c "$CLIENTS" -j 2 -T 600 postgres \
        >"$WORK/bench.log" 2>&1 &
    bench=$!
    seq "$first" 10000000 |
        sed 's/.*/INSERT INTO confirmed VALUES (&, repeat(md5(&::text), 8)) RETURNING number;/' |
        sql 2>/dev/null >"$WORK/confirmed.new" &
    writer=$!
    # The checks below need some rows.
    eventually 300 'rows are committed' are_confirmed $((50 + RANDOM % ROWS))
}

# are_confirmed COUNT: whether the server has confirmed that many rows since `begin_load`.
are_confirmed() {
    [ "$(wc -l <"$WORK/confirmed.new")" -ge "$1" ]
}

# end_load: waits for the clients, which have lost their server.
end_load() {
    end_of 120 'the end of the client' "$writer" || true
    end_of 120 'the end of pgbench' "$bench" || true
    cat "$WORK/confirmed.new" >>"$WORK/confirmed"
    # The next row may be committed without a confirmation.
    first=$(($(tail -n 1 "$WORK/confirmed") + 2))
}

# check WHEN: checks the database after a kill.
check() {
    local sums
    sql -c 'SELECT number FROM confirmed ORDER BY number' >"$WORK/found"
    comm -23 <(sort "$WORK/confirmed") <(sort "$WORK/found") >"$WORK/missing"
    [ ! -s "$WORK/missing" ] ||
        fail "$1: $(wc -l <"$WORK/missing") committed rows are lost, the first:" \
            "$(head -n 1 "$WORK/missing")"
    sums="$(sql -c 'SELECT count(*) FROM confirmed WHERE text <> repeat(md5(number::text), 8)')"
    [ "$sums" = 0 ] ||
        fail "$1: rows have other text than was written"
    sums="$(sql -F ' ' -c 'SELECT (SELECT sum(abalance) FROM pgbench_accounts),
        (SELECT sum(bbalance) FROM pgbench_branches), (SELECT sum(tbalance) FROM pgbench_tellers),
        (SELECT coalesce(sum(delta), 0) FROM pgbench_history)')"
    [ "$(tr ' ' '\n' <<<"$sums" | sort -u | wc -l)" = 1 ] ||
        fail "$1: accounts, branches, tellers and history add up to different sums: $sums"
    as_postgres pg_amcheck -h "$WORK/run" -d postgres --heapallindexed --install-missing \
        >"$WORK/amcheck" 2>&1 || {
        head -n 20 "$WORK/amcheck"
        fail "$1: pg_amcheck"
    }
    say "$1: $(wc -l <"$WORK/confirmed") rows and \
$(sql -c 'SELECT count(*) FROM pgbench_history') transactions are there"
}

# kill_mount OPTION...: kills the mount, then the server on it, and mounts the view again.
kill_mount() {
    local daemon
    daemon="$(daemon_of "$WORK/view")"
    [ -n "$daemon" ] || fail 'no daemon serves the mount'
    kill -9 "$daemon"
    wait_gone "$daemon" || fail 'the daemon does not end'
    kill_server
    end_load
    mount_view "$WORK/source" "$WORK/view" --allow-other "$@"
}

cd "$WORK"
mkdir run
chown postgres: run
touch confirmed
mount_view "$WORK/source" "$WORK/view" --allow-other
mkdir "$data"
chown postgres: "$data"
as_postgres initdb -D "$data" -k -A trust --no-locale -E UTF8 >"$WORK/initdb.log" 2>&1 || {
    tail -n 20 "$WORK/initdb.log"
    fail 'initdb'
}
# Few buffers, so that the server reads pages again. It does not listen on the network.
as_postgres tee -a "$data/postgresql.conf" >/dev/null <<CONFIGURATION
listen_addresses = ''
unix_socket_directories = '$WORK/run'
shared_buffers = '2MB'
max_connections = 20
max_wal_size = '32MB'
checkpoint_timeout = '30s'
bgwriter_delay = '10ms'
CONFIGURATION
start_server
sql -c 'CREATE TABLE confirmed(number bigint PRIMARY KEY, text text NOT NULL)'
as_postgres pgbench -i -q -s 2 -h "$WORK/run" postgres >"$WORK/bench.log" 2>&1 ||
    fail "pgbench -i: $(tail -n 3 "$WORK/bench.log")"

begin_load
kill_server
end_load
start_server
check 'the server killed'

begin_load
kill_mount --direct-io
start_server
check 'the mount killed'

begin_load
kill_mount
start_server
check 'the mount killed with direct I/O'

kill -INT "$server"
end_of 120 'the server stops' "$server" || fail 'the server did not stop cleanly'
server=''
unmount_view "$WORK/view"
as_postgres pg_checksums --check -D "$WORK/source/data" >"$WORK/checksums" 2>&1 || {
    tail -n 20 "$WORK/checksums"
    fail 'pg_checksums finds bad pages in the source'
}
grep -q '^Bad checksums:  0$' "$WORK/checksums" || fail "pg_checksums: $(cat "$WORK/checksums")"
say "$(grep '^Blocks scanned' "$WORK/checksums"), none of them bad"
passed
