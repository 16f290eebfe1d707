# Functions of the bucket suites: servers, and the tests of every writable store. Suites source this
# file.
# shellcheck shell=bash

HERE_BUCKET="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$HERE_BUCKET/../mount/lib.sh"

# The store that suites start (default: the workspace's release build).
OGIVE_DEMO_STORE="${OGIVE_DEMO_STORE:-$TARGET/release/ogive-demo-store}"
SERVERS=()

# Ends the servers, then everything that mount/lib.sh ends.
stop_servers() {
    local code=$? server
    set +e
    # First the mounts, because they would wait for a store that is gone.
    for mount in "${MOUNTED[@]}"; do
        force_unmount "$mount"
    done
    for server in "${SERVERS[@]}"; do
        kill "$server" 2>/dev/null
        wait "$server" 2>/dev/null
    done
    (exit "$code")
    cleanup
}

# bucket_suite NAME TEXT: begins a suite, without credentials of this machine.
bucket_suite() {
    suite "bucket-$1" "$2"
    needs_ogive
    need python3 sha256sum curl
    has_option --endpoint-url || skip 'this ogive has no buckets'
    trap stop_servers EXIT
    export STATE_DIRECTORY="$WORK/state"
    unset AWS_PROFILE AWS_SESSION_TOKEN AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3
    export AWS_EC2_METADATA_DISABLED=true
    export NO_PROXY='*' no_proxy='*'
}

# demo_answers: whether the demo store has printed its address.
demo_answers() {
    [ -s "$WORK/demo/client.env" ] && [ -s "$WORK/demo.log" ]
}

# start_demo: starts the demo store in $WORK/demo, and exports its address and credentials.
start_demo() {
    [ -x "$OGIVE_DEMO_STORE" ] || skip "there is no $OGIVE_DEMO_STORE"
    "$OGIVE_DEMO_STORE" "$WORK/demo" >"$WORK/demo.log" 2>&1 &
    SERVERS+=("$!")
    eventually 60 'the demo store starts' demo_answers
    # shellcheck source=/dev/null
    source "$WORK/demo/client.env"
    export ADDRESS=s3://demo
}

# serve_demo: starts the demo store, and mounts it at $WORK/server.
serve_demo() {
    start_demo
    mkdir -p "$WORK/server"
    remember_mount "$WORK/server"
    "$OGIVE" mount --stage "$WORK/demo/stage" "$ADDRESS" "$WORK/server"
}

# serve URL COMMAND...: starts a server and waits until it answers.
serve() {
    local url="$1" server
    shift
    "$@" >"$WORK/server.log" 2>&1 &
    server=$!
    SERVERS+=("$server")
    for _ in $(seq 600); do
        ! curl --silent --output /dev/null "$url" || return 0
        kill -0 "$server" 2>/dev/null || {
            tail -n 5 "$WORK/server.log" >&2
            fail "$1 does not start"
        }
        sleep 0.1
    done
    fail "$1 does not answer"
}

# install_azurite: installs Microsoft's emulator of Azure, unless AZURITE is its program; sets
# azurite.
install_azurite() {
    azurite="${AZURITE:-}"
    [ -z "$azurite" ] || return 0
    need npm node
    say 'installing Azurite'
    mkdir "$WORK/npm"
    (cd "$WORK/npm" && timeout 240 npm install --no-audit --no-fund --silent azurite@3) \
        >"$WORK/npm.log" 2>&1 || skip 'Azurite cannot be installed'
    azurite="$WORK/npm/node_modules/.bin/azurite-blob"
}

# serve_azurite CONTAINER: starts Azurite with an empty container; exports its connection string,
# and sets AZURITE_CLIENT.
serve_azurite() {
    local port account=devstoreaccount1 key
    port="$(free_port)"
    serve "http://127.0.0.1:$port/" "$azurite" --silent --location "$WORK/azurite" \
        --blobHost 127.0.0.1 --blobPort "$port" --skipApiVersionCheck
    # The account and the key of every emulator, from Microsoft's documentation.
    key='Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='
    export AZURE_STORAGE_CONNECTION_STRING="DefaultEndpointsProtocol=http;AccountName=$account;\
AccountKey=$key;BlobEndpoint=http://127.0.0.1:$port/$account;"
    AZURITE_CLIENT=(python3 "$HERE_BUCKET/azure_client.py" "http://127.0.0.1:$port/$account/$1"
        "$account" "$key")
    "${AZURITE_CLIENT[@]}" || fail 'the container cannot be created'
}

# go_tool NAME MODULE: builds a program from the Go module proxy once, among the test tools. This
# takes minutes, so it happens only with --all.
go_tool() {
    local bin="$OGIVE_TEST_TOOLS/bin"
    ! command -v "$1" >/dev/null || return 0
    [ "${OGIVE_ALL:-0}" = 1 ] || skip "no $1 on this machine; --all builds it"
    command -v go >/dev/null || skip "no $1 and no Go to build it with"
    say "building $1"
    mkdir -p "$bin" "$WORK/go"
    GOBIN="$WORK/go" timeout 1800 go install "$2" >"$WORK/go.log" 2>&1 || skip "$1 cannot be built"
    mv "$WORK/go/${2##*/}" "$bin/$1" 2>/dev/null || mv "$WORK/go/"* "$bin/$1"
}

# statistic MNT NAME: a counter of a mount; 0 if it does not exist.
statistic() {
    cat "$1/.ogive/arcstats" "$1/.ogive/ogivestats" |
        awk -v name="$2" '$1 == name { value = $3 } END { print value + 0 }'
}

# mount_at NAME [OPTION...]: mounts $ADDRESS at $WORK/NAME with its own stage. Its messages about
# the store are in $WORK/messages-NAME.
mount_at() {
    local name="$1"
    shift
    mkdir -p "$WORK/$name"
    remember_mount "$WORK/$name"
    "$OGIVE" mount --stage "$WORK/stage-$name" --metadata-ttl 0 --negative-ttl 0 \
        --log-file "$WORK/log-$name" "$@" "$ADDRESS" "$WORK/$name" 2>"$WORK/messages-$name" || {
        cat "$WORK/messages-$name" >&2
        fail "$ADDRESS cannot be mounted"
    }
}

# kill_daemon NAME: kills the daemon of a mount, and removes the mount.
kill_daemon() {
    local daemon
    daemon="$(daemon_of "$WORK/$1")"
    kill -9 "$daemon"
    wait_gone "$daemon" || fail 'the daemon survives SIGKILL'
    force_unmount "$WORK/$1"
}

sum() {
    sha256sum <"$1" | cut -d ' ' -f 1
}

# exercise: the tests of every writable store. $ADDRESS is its bucket.
exercise() {
    local big small
    say 'bytes and names'
    mount_at one
    head -c 12000000 /dev/urandom >"$WORK/big"
    printf 'hello' >"$WORK/small"
    big="$(sum "$WORK/big")" small="$(sum "$WORK/small")"
    mkdir -p "$WORK/one/d/e"
    cp "$WORK/big" "$WORK/one/d/big"
    cp "$WORK/small" "$WORK/one/d/e/ü & <x> %25 small"
    : >"$WORK/one/empty"
    # Another mount has an empty cache, so it shows the store's content.
    mount_at two
    [ "$(sum "$WORK/two/d/big")" = "$big" ] || fail 'wrong bytes of a large file'
    [ "$(sum "$WORK/two/d/e/ü & <x> %25 small")" = "$small" ] || fail 'wrong bytes of a small file'
    [ "$(stat -c '%F' "$WORK/two/empty")" = 'regular empty file' ] || fail 'no empty file'
    [ "$(ls "$WORK/two/d")" = $'big\ne' ] || fail "wrong names: $(ls "$WORK/two/d")"

    say 'partial changes, renames, removals'
    printf 'in the middle' | dd of="$WORK/one/d/big" bs=1 seek=6000000 conv=notrunc status=none
    printf 'in the middle' | dd of="$WORK/big" bs=1 seek=6000000 conv=notrunc status=none
    printf 'more' >>"$WORK/one/d/big"
    printf 'more' >>"$WORK/big"
    [ "$(sum "$WORK/two/d/big")" = "$(sum "$WORK/big")" ] ||
        fail 'wrong bytes after a partial change'
    mv "$WORK/one/d/big" "$WORK/one/moved"
    [ ! -e "$WORK/two/d/big" ] || fail 'a renamed file still has its old name'
    [ "$(sum "$WORK/two/moved")" = "$(sum "$WORK/big")" ] || fail 'renaming changed the bytes'
    mv "$WORK/one/d" "$WORK/one/f"
    [ "$(sum "$WORK/two/f/e/ü & <x> %25 small")" = "$small" ] || fail 'a directory lost its file'
    [ ! -e "$WORK/two/d" ] || fail 'a renamed directory still has its old name'
    rm -r "$WORK/one/f" "$WORK/one/moved"
    [ "$(ls "$WORK/two")" = empty ] || fail "removed files stay: $(ls "$WORK/two")"

    say "another client's change is not overwritten, and ours is not lost"
    python3 "$HERE_BUCKET/conflict.py" "$WORK/one/contested" "$WORK/two/contested" ||
        fail 'a conflict was not reported'
    [ "$(cat "$WORK/two/contested")" = theirs ] || fail "another client's change was overwritten"
    "$OGIVE" bucket conflicts "$WORK/stage-one" | grep -q contested || fail 'our change is lost'

    say 'kill -9 after fsync, and within a write'
    python3 "$HERE_BUCKET/kill_after_write.py" "$WORK/one/kept" "$WORK/one/staged" \
        "$(daemon_of "$WORK/one")" || fail 'a file cannot be synced'
    wait_gone "$(daemon_of "$WORK/one")" || true
    force_unmount "$WORK/one"
    [ "$(cat "$WORK/two/kept")" = synced ] || fail 'synced bytes are not in the store'
    [ ! -e "$WORK/two/staged" ] || fail 'unsynced bytes are already in the store'
    mount_at one
    eventually 60 'the next mount uploads written bytes' test -e "$WORK/two/staged"
    [ "$(cat "$WORK/two/staged")" = written ] || fail 'written bytes are lost with the daemon'

    say 'a read-only mount refuses changes'
    mkdir -p "$WORK/three"
    remember_mount "$WORK/three"
    "$OGIVE" mount "$ADDRESS" "$WORK/three"
    [ "$(cat "$WORK/three/kept")" = synced ] || fail 'wrong bytes'
    if rm "$WORK/three/kept" 2>/dev/null; then fail 'a change was not refused'; fi
    unmount_view "$WORK/three"
    unmount_view "$WORK/two"
    unmount_view "$WORK/one"
}
