#!/usr/bin/env bash
# Where credentials come from: a profile, and a program whose credentials end while the bucket is
# mounted. The demo store refuses requests that are signed with others.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bucket_suite credentials 'credentials of profiles and of programs, and such as end'

serve_demo
key="$AWS_ACCESS_KEY_ID" secret="$AWS_SECRET_ACCESS_KEY"
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN
export AWS_CONFIG_FILE="$WORK/config" AWS_SHARED_CREDENTIALS_FILE="$WORK/credentials"
head -c 300000 /dev/urandom >"$WORK/server/file"
view="$WORK/view"
mkdir -p "$view"
remember_mount "$view"

say 'a profile in the files of the AWS command line'
printf '[default]\naws_access_key_id = wrong\naws_secret_access_key = wrong\n' >"$WORK/credentials"
printf '[other]\naws_access_key_id = %s\naws_secret_access_key = %s\n' "$key" "$secret" \
    >>"$WORK/credentials"
expect_failure 'the store refuses' "$OGIVE" mount "$ADDRESS" "$view"
# Who names a profile means it, whatever the environment has.
AWS_ACCESS_KEY_ID=wrong AWS_SECRET_ACCESS_KEY=wrong \
    "$OGIVE" mount --profile other "$ADDRESS" "$view"
cmp "$WORK/server/file" "$view/file" || fail 'other bytes'
unmount_view "$view"

say 'keys in a file that is replaced while the bucket is mounted'
# hand KEY: others put it there.
hand() {
    printf '[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n' "$1" "$secret" \
        >"$WORK/new"
    mv "$WORK/new" "$WORK/credentials"
}
# waits_for STATE COMMAND...: tries it until it ends as is wanted.
waits_for() {
    local state="$1"
    shift
    for _ in $(seq 120); do
        if "$@" >/dev/null 2>"$WORK/said"; then [ "$state" = well ] && return; else
            [ "$state" = badly ] && return
        fi
        sleep 0.5
    done
    fail "never ends $state: $*"
}
hand "$key"
"$OGIVE" mount --metadata-ttl 0 "$ADDRESS" "$view"
cmp "$WORK/server/file" "$view/file" || fail 'other bytes'
hand wrong
waits_for badly cat "$view/file"
grep -q 'Permission denied' "$WORK/said" || fail "not EACCES: $(cat "$WORK/said")"
hand "$key"
waits_for well cat "$view/file"
unmount_view "$view"
rm "$WORK/credentials"

say 'a program, whose credentials end while the bucket is mounted'
mkdir "$WORK/a directory"
program="$WORK/a directory/give"
# give SECONDS: it gives what lasts so long, and notes that it was called.
give() {
    cat >"$program" <<END
#!/bin/sh
echo called >>"$WORK/calls"
printf '{"Version": 1, "AccessKeyId": "$key", "SecretAccessKey": "$secret", "Expiration": "%s"}' \
    "\$(date -u -d '+$1 seconds' +%Y-%m-%dT%H:%M:%SZ)"
END
    chmod +x "$program"
}
give 30
printf '[default]\ncredential_process = "%s" --for "a b"\n' "$program" >"$WORK/config"
mkdir "$WORK/stage"
"$OGIVE" mount --stage "$WORK/stage" "$ADDRESS" "$view"
began="$SECONDS"
number=0
while [ "$((SECONDS - began))" -lt 34 ]; do
    number=$((number + 1))
    printf '%s' "$number" >"$view/written-$number"
    cmp -s "$WORK/server/file" "$view/file" || fail 'other bytes'
    sleep 0.5
done
# Names may be told from a listing that is a second old.
sleep 1.1
for written in $(seq "$number"); do
    [ "$(cat "$WORK/server/written-$written")" = "$written" ] ||
        fail 'what was written is not there'
done
calls="$(wc -l <"$WORK/calls")"
say "$number files written, the program was called $calls times"
# Once for each of those who sign, and anew when what it gave has less than 20 seconds left.
[ "$calls" -ge 3 ] || fail 'credentials that had ended were used'
[ "$calls" -le 20 ] || fail 'the program is run for each request'

say 'it fails: what was said is told, and nothing hangs; it gives again, and all goes on'
printf '#!/bin/sh\necho "log in first" >&2\nexit 1\n' >"$program"
unmount_view "$view"
code=0
"$OGIVE" mount "$ADDRESS" "$view" >"$WORK/said" 2>&1 || code=$?
[ "$code" -eq 3 ] || fail "exit code $code"
grep -q 'log in first' "$WORK/said" || fail 'what the program says is not told'
give 300
"$OGIVE" mount "$ADDRESS" "$view"
[ "$(cat "$view/written-1")" = 1 ] || fail 'it is not read'
unmount_view "$view"
passed
