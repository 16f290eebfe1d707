# Common ground of the suites of buckets: a server of this run, and what every store that is written
# to has to stand. Sourced, never run.
# shellcheck shell=bash

HERE_BUCKET="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$HERE_BUCKET/../mount/lib.sh"

# The store that suites start (default: the workspace's release build).
OGIVE_DEMO_STORE="${OGIVE_DEMO_STORE:-$TARGET/release/ogive-demo-store}"
SERVERS=()

# Ends the servers, then what mount/lib.sh ends.
stop_servers() {
    local code=$? server
    set +e
    # A mount whose store is gone waits for it.
    for mount in "${MOUNTED[@]}"; do
        unmount_at_any_price "$mount"
    done
    for server in "${SERVERS[@]}"; do
        kill "$server" 2>/dev/null
        wait "$server" 2>/dev/null
    done
    (exit "$code")
    cleanup
}

# bucket_suite NAME TEXT
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

# demo_answers: whether the demo store has said its address.
demo_answers() {
    [ -s "$WORK/demo/client.env" ] && [ -s "$WORK/demo.log" ]
}

# start_demo: starts the demo store in $WORK/demo, and exports its address and credentials.
start_demo() {
    [ -x "$OGIVE_DEMO_STORE" ] || skip "there is no $OGIVE_DEMO_STORE"
    "$OGIVE_DEMO_STORE" "$WORK/demo" >"$WORK/demo.log" 2>&1 &
    SERVERS+=("$!")
    eventually 60 'the demo store does not start' demo_answers
    # shellcheck source=/dev/null
    source "$WORK/demo/client.env"
    export ADDRESS=s3://demo
}

# serve_demo: the same, with a mount of it at $WORK/server.
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

# install_azurite: Microsoft's own emulator of Azure, as "azurite"; AZURITE names one that is there.
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

# serve_azurite CONTAINER: starts it with an empty container, and says how it is reached.
serve_azurite() {
    local port account=devstoreaccount1 key
    port="$(free_port)"
    serve "http://127.0.0.1:$port/" "$azurite" --silent --location "$WORK/azurite" \
        --blobHost 127.0.0.1 --blobPort "$port" --skipApiVersionCheck
    # The account and key of every emulator, as Microsoft's documentation has them.
    key='Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='
    export AZURE_STORAGE_CONNECTION_STRING="DefaultEndpointsProtocol=http;AccountName=$account;\
AccountKey=$key;BlobEndpoint=http://127.0.0.1:$port/$account;"
    AZURITE_CLIENT=(python3 "$HERE_BUCKET/container.py" "http://127.0.0.1:$port/$account/$1"
        "$account" "$key")
    "${AZURITE_CLIENT[@]}" || fail 'the container cannot be made'
}

# go_tool NAME MODULE: a program of the Go module proxy, built once and kept with the test tools.
# Compiling takes minutes, so only with --all.
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

# statistic MNT NAME: a counter of a mount, 0 if there is none.
statistic() {
    cat "$1/.ogive/arcstats" "$1/.ogive/ogivestats" |
        awk -v name="$2" '$1 == name { value = $3 } END { print value + 0 }'
}

# mount_at NAME [OPTION...]: mounts $ADDRESS at $WORK/NAME with a stage of its own. What it says of
# the store is in $WORK/said-NAME.
mount_at() {
    local name="$1"
    shift
    mkdir -p "$WORK/$name"
    remember_mount "$WORK/$name"
    "$OGIVE" mount --stage "$WORK/stage-$name" --metadata-ttl 0 --negative-ttl 0 \
        --log-file "$WORK/log-$name" "$@" "$ADDRESS" "$WORK/$name" 2>"$WORK/said-$name" || {
        cat "$WORK/said-$name" >&2
        fail "$ADDRESS cannot be mounted"
    }
}

# kill_daemon NAME: as a crash does it.
kill_daemon() {
    local daemon
    daemon="$(daemon_of "$WORK/$1")"
    kill -9 "$daemon"
    wait_gone "$daemon" || fail 'the daemon does not die'
    unmount_at_any_price "$WORK/$1"
}

sum() {
    sha256sum <"$1" | cut -d ' ' -f 1
}

# exercise: what every store that is written to has to stand. $ADDRESS is its bucket.
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
    # Another mount has nothing in its cache: what it sees comes from the store.
    mount_at two
    [ "$(sum "$WORK/two/d/big")" = "$big" ] || fail 'other bytes come back'
    [ "$(sum "$WORK/two/d/e/ü & <x> %25 small")" = "$small" ] || fail 'other bytes come back'
    [ "$(stat -c '%F' "$WORK/two/empty")" = 'regular empty file' ] || fail 'no empty file'
    [ "$(ls "$WORK/two/d")" = $'big\ne' ] || fail "wrong names: $(ls "$WORK/two/d")"

    say 'changes in part, renames, removals'
    printf 'in the middle' | dd of="$WORK/one/d/big" bs=1 seek=6000000 conv=notrunc status=none
    printf 'in the middle' | dd of="$WORK/big" bs=1 seek=6000000 conv=notrunc status=none
    printf 'more' >>"$WORK/one/d/big"
    printf 'more' >>"$WORK/big"
    [ "$(sum "$WORK/two/d/big")" = "$(sum "$WORK/big")" ] || fail 'a change in part went wrong'
    mv "$WORK/one/d/big" "$WORK/one/moved"
    [ ! -e "$WORK/two/d/big" ] || fail 'a renamed file has its old name still'
    [ "$(sum "$WORK/two/moved")" = "$(sum "$WORK/big")" ] || fail 'renaming changed the bytes'
    mv "$WORK/one/d" "$WORK/one/f"
    [ "$(sum "$WORK/two/f/e/ü & <x> %25 small")" = "$small" ] || fail 'a directory lost its file'
    [ ! -e "$WORK/two/d" ] || fail 'a renamed directory has its old name still'
    rm -r "$WORK/one/f" "$WORK/one/moved"
    [ "$(ls "$WORK/two")" = empty ] || fail "something stays: $(ls "$WORK/two")"

    say 'a foreign change is not overwritten, and ours is not lost'
    python3 "$HERE_BUCKET/conflict.py" "$WORK/one/fought" "$WORK/two/fought" ||
        fail 'a foreign change was overwritten, or was not told'
    [ "$(cat "$WORK/two/fought")" = theirs ] || fail 'a foreign change was overwritten'
    "$OGIVE" bucket conflicts "$WORK/stage-one" | grep -q fought || fail 'our change is lost'

    say 'kill -9 after fsync, and in the middle of a file'
    python3 "$HERE_BUCKET/killed.py" "$WORK/one/kept" "$WORK/one/staged" \
        "$(daemon_of "$WORK/one")" || fail 'a file cannot be synced'
    wait_gone "$(daemon_of "$WORK/one")" || true
    unmount_at_any_price "$WORK/one"
    [ "$(cat "$WORK/two/kept")" = synced ] || fail 'what was synced is not in the store'
    [ ! -e "$WORK/two/staged" ] || fail 'what was not synced shows already'
    mount_at one
    for _ in $(seq 100); do
        [ ! -e "$WORK/two/staged" ] || break
        sleep 0.1
    done
    [ "$(cat "$WORK/two/staged")" = written ] || fail 'what was written is lost with the daemon'

    say 'what is mounted to be read stays as it is'
    mkdir -p "$WORK/three"
    remember_mount "$WORK/three"
    "$OGIVE" mount "$ADDRESS" "$WORK/three"
    [ "$(cat "$WORK/three/kept")" = synced ] || fail 'other bytes come back'
    if rm "$WORK/three/kept" 2>/dev/null; then fail 'a change was not refused'; fi
    unmount_view "$WORK/three"
    unmount_view "$WORK/two"
    unmount_view "$WORK/one"
}
