#!/usr/bin/env bash
# Sources of credentials: a profile, a file that changes, and a program whose credentials expire
# while the bucket is mounted. The demo store refuses requests with other credentials.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bucket_suite credentials 'credentials of profiles and of programs, also expiring ones'

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
# --profile takes precedence over the environment.
AWS_ACCESS_KEY_ID=wrong AWS_SECRET_ACCESS_KEY=wrong \
    "$OGIVE" mount --profile other "$ADDRESS" "$view"
cmp "$WORK/server/file" "$view/file" || fail 'other bytes'
unmount_view "$view"

say 'keys in a file that is replaced while the bucket is mounted'
# replace_key KEY: replaces the file of credentials, as another program would.
replace_key() {
    printf '[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n' "$1" "$secret" \
        >"$WORK/new"
    mv "$WORK/new" "$WORK/credentials"
}
# fails COMMAND...: whether a command fails; its errors go to $WORK/errors.
fails() {
    ! "$@" 2>"$WORK/errors"
}
replace_key "$key"
"$OGIVE" mount --metadata-ttl 0 "$ADDRESS" "$view"
cmp "$WORK/server/file" "$view/file" || fail 'other bytes'
replace_key wrong
eventually 60 'reads fail with the wrong key' fails cat "$view/file"
grep -q 'Permission denied' "$WORK/errors" || fail "not EACCES: $(cat "$WORK/errors")"
replace_key "$key"
eventually 60 'reads succeed with the right key' cat "$view/file"
unmount_view "$view"
rm "$WORK/credentials"

say 'a program whose credentials expire while the bucket is mounted'
mkdir "$WORK/a directory"
program="$WORK/a directory/give"
# give SECONDS: makes the program give credentials that last SECONDS, and count its calls.
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
# The server's mount may serve names from a listing that is a second old.
sleep 1.1
for written in $(seq "$number"); do
    [ "$(cat "$WORK/server/written-$written")" = "$written" ] ||
        fail "written-$written is not in the store"
done
calls="$(wc -l <"$WORK/calls")"
say "$number files written, the program was called $calls times"
# Each signer calls it once, and again when its credentials last less than 20 seconds.
[ "$calls" -ge 3 ] || fail 'expired credentials were used'
[ "$calls" -le 20 ] || fail 'the program runs for each request'

say 'the program fails: its message is shown, and nothing hangs; later it works again'
printf '#!/bin/sh\necho "log in first" >&2\nexit 1\n' >"$program"
unmount_view "$view"
code=0
"$OGIVE" mount "$ADDRESS" "$view" >"$WORK/output" 2>&1 || code=$?
[ "$code" -eq 3 ] || fail "exit code $code"
grep -q 'log in first' "$WORK/output" || fail "the program's message is not shown"
give 300
"$OGIVE" mount "$ADDRESS" "$view"
[ "$(cat "$view/written-1")" = 1 ] || fail 'a file cannot be read'
unmount_view "$view"
passed
