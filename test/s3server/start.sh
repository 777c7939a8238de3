#!/usr/bin/env bash
# Starts a real S3 server for tests, and ends it when standard input is closed: also when whoever
# started it is killed.
#
#   test/s3server/start.sh DIR
#
# It prints one line, `ENDPOINT ACCESS_KEY SECRET_KEY`, when it is ready. Each directory of DIR/buckets
# is a bucket: mkdir makes one, without another tool. DIR must not be in use; the log is DIR/log. In a
# shell:
#
#   mkdir -p "$dir/buckets/lake"
#   coproc s3 { test/s3server/start.sh "$dir"; }
#   read -r endpoint access secret <&"${s3[0]}"   # fails if the server does not start
#   ...
#   eval "exec ${s3[1]}>&-"; wait "$s3_PID"
#
# The server is versitygw, built once in the version of go.mod and kept in $LANDFAST_CACHE, by default
# ${XDG_CACHE_HOME:-~/.cache}/landfast. Exit status: 0 ended, 1 it does not start, 2 it cannot be built.

set -euo pipefail

dir=${1:?usage: start.sh DIR}
module=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${LANDFAST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/landfast}
package=github.com/versity/versitygw

# Of the host, whatever the caller builds for; without the flags of the caller's own module.
host_go() { env -u GOOS -u GOARCH -u GOFLAGS CGO_ENABLED=0 go "$@"; }

version=$(host_go list -C "$module" -m -f '{{.Version}}' $package)
server=$cache/versitygw/$version/versitygw

if [[ ! -x $server ]]; then
  mkdir -p "${server%/*}"
  (
    # Whoever comes second waits, and finds it built. Without flock both build it.
    if command -v flock >/dev/null; then flock 9; fi
    [[ ! -x $server ]] || exit 0
    part=$(mktemp "$server.XXXXXX")
    trap 'rm -f "$part" "$part.log"' EXIT
    began=$SECONDS
    if ! host_go build -C "$module" -trimpath -ldflags '-s -w' -o "$part" $package/cmd/versitygw 2>"$part.log"; then
      tail -n 20 "$part.log" >&2
      echo "s3server: versitygw $version cannot be built" >&2
      exit 2
    fi
    mv "$part" "$server" # At once, so that nobody sees half of it.
    echo "s3server: built versitygw $version in $((SECONDS - began)) s" >&2
  ) 9>"${server%/*}/lock"
fi

mkdir -p "$dir/buckets" "$dir/meta"
access=tester secret=not-secret-at-all
pid=

# end ends the server, if one runs.
end() {
  [[ -n $pid ]] || return 0
  kill "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
  pid=
}
trap end EXIT

# Nobody else's server, at a port that ours could not have, answers to this.
health=/health-$BASHPID-$RANDOM$RANDOM

# answers PORT tells whether our server is there.
answers() {
  local status
  { exec 3<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null || return 1
  printf 'GET %s HTTP/1.0\r\n\r\n' "$health" >&3
  read -r -t 2 _ status _ <&3 || status=
  exec 3>&-
  [[ $status == 200 ]]
}

# The port is from below those that the system gives to clients. One that is taken makes the server end.
for _ in {1..20}; do
  port=$((20000 + RANDOM % 12000))
  "$server" --port "127.0.0.1:$port" --access $access --secret $secret --region us-east-1 \
    --health "$health" --quiet posix --sidecar "$dir/meta" "$dir/buckets" >"$dir/log" 2>&1 3>&- &
  pid=$!
  for _ in {1..200}; do
    if ! kill -0 "$pid" 2>/dev/null; then
      continue 2
    fi
    if answers "$port"; then
      echo "http://127.0.0.1:$port $access $secret"
      cat >/dev/null || true
      exit 0
    fi
    sleep 0.05
  done
  end
done
tail -n 20 "$dir/log" >&2
echo "s3server: versitygw does not start" >&2
exit 1
