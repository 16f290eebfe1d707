#!/usr/bin/env bash
# An SQLite database on the mount: transactions in both journal modes, a client killed within one,
# recovery, and the same file read in the source.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite sqlite 'a database: written, killed within a transaction, reopened, compared with the source'
need sqlite3

# sql FILE TEXT: runs SQL, and waits for locks of other clients.
sql() {
    sqlite3 -bail -cmd '.timeout 300000' "$1" "$2"
}

# check MODE DATABASE: the database passes its integrity check, and the amounts add up.
check() {
    local answer
    answer="$(sql "$2" 'PRAGMA integrity_check;')"
    [ "$answer" = ok ] || fail "$1: integrity_check says $answer"
    # Every transaction moves an amount from one account to another.
    answer="$(sql "$2" 'SELECT sum(amount) FROM account;')"
    [ "$answer" = 100000 ] || fail "$1: the amounts add up to $answer, not 100000"
}

# transfers COUNT: prints transactions as SQL.
transfers() {
    local number
    for number in $(seq "$1"); do
        echo "BEGIN IMMEDIATE;
        UPDATE account SET amount = amount - 7 WHERE id = $((number % 100));
        INSERT INTO history(text) VALUES (hex(randomblob(2000)));
        UPDATE account SET amount = amount + 7 WHERE id = $(((number * 31 + 1) % 100));
        COMMIT;"
    done
}

# transact MODE JOURNAL: fills a database, and kills clients within transactions.
transact() {
    local mode="$1" journal="$2"
    local database="$WORK/$mode/$journal.db" client round
    sql "$database" "PRAGMA journal_mode = $journal;
        CREATE TABLE account(id INTEGER PRIMARY KEY, amount INTEGER);
        CREATE TABLE history(id INTEGER PRIMARY KEY, text TEXT);
        WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99)
        INSERT INTO account SELECT i, 1000 FROM n;" >/dev/null
    # Two writers at once: locks must hold between processes.
    transfers 60 | sqlite3 -bail -cmd '.timeout 300000' "$database" &
    client=$!
    transfers 60 | sqlite3 -bail -cmd '.timeout 300000' "$database" || fail "$mode $journal: writer"
    end_of 300 'the end of the second writer' "$client" ||
        fail "$mode $journal: second writer"
    [ "$(sql "$database" 'SELECT count(*) FROM history;')" = 120 ] ||
        fail "$mode $journal: transactions were lost"
    check "$mode $journal" "$database"
    for round in 1 2 3 4; do
        # A large transaction that spills to the file before its commit.
        {
            echo 'PRAGMA cache_size = 20; PRAGMA cache_spill = 10; BEGIN IMMEDIATE;'
            transfers 400 | grep -v -e BEGIN -e COMMIT
            echo '.shell touch '"$WORK/$mode.$journal.$round"
            transfers 100000 | grep -v -e BEGIN -e COMMIT
        } | sqlite3 "$database" &
        client=$!
        eventually 120 "$mode $journal: the client is within its transaction" \
            test -e "$WORK/$mode.$journal.$round"
        kill -9 "$client"
        wait "$client" 2>/dev/null || true
        check "$mode $journal, killed $round times" "$database"
        [ "$(sql "$database" 'SELECT count(*) FROM history;')" = $((119 + round)) ] ||
            fail "$mode $journal: an uncommitted transaction is in the database"
        transfers 1 | sqlite3 -bail "$database"
    done
    sql "$database" 'VACUUM; PRAGMA wal_checkpoint(TRUNCATE);' >/dev/null
    sql "$database" .dump >"$WORK/through"
    sql "$WORK/$mode-source/$journal.db" .dump >"$WORK/bare"
    cmp "$WORK/through" "$WORK/bare" || fail "$mode $journal: the source holds other rows"
    cmp "$database" "$WORK/$mode-source/$journal.db" || fail "$mode $journal: files differ"
    check "$mode $journal, bare" "$WORK/$mode-source/$journal.db"
    say "$mode, journal $journal"
}

for mode in default direct; do
    options=()
    [ "$mode" = default ] || options=(--direct-io)
    mount_view "$WORK/$mode-source" "$WORK/$mode" "${options[@]}"
    transact "$mode" delete
    transact "$mode" wal
    unmount_view "$WORK/$mode"
done
passed
