# shellcheck shell=bash disable=SC2154 # scripts/conformance sets what is not set here.
# iceberg-go, in a warehouse of files and in one on S3. scripts/conformance says how a suite is written.

icebergo_max=600 # seconds

# shellcheck disable=SC2034 # Read by scripts/conformance.
s3_icebergo=yes

# icebergo_tests names the built tests, for each version of them and of Go.
icebergo_tests() {
  printf '%s/icebergo/%s.test' "$cache" "$({ cat "$root"/test/icebergo/*.go "$root"/test/icebergo/go.* && go version; } | sha256sum | cut -c1-16)"
}

install_icebergo() {
  local tests
  tests=$(icebergo_tests)
  if [[ -x $tests ]]; then
    return
  fi
  mkdir -p "$cache/icebergo"
  go -C "$suite" vet .
  go -C "$suite" test -c -o "$tests" .
}

run_icebergo() {
  local status=0 counts
  create_warehouse icebergo
  create_s3_warehouse icebergo-s3

  bounded "$icebergo_max" "$(icebergo_tests)" -test.v -test.timeout "${icebergo_max}s" -url "$url" -warehouse icebergo \
    -checkout "$root" -s3-warehouse icebergo-s3 -s3-access-key "$s3_access_key" -s3-secret-key "$s3_secret_key" >log 2>&1 || status=$?
  grep -E '^ *--- ' log || true
  if ((status != 0)); then
    cat log
  fi
  # A test that has subtests stands before them, less indented, and is not counted. None may be skipped.
  read -ra counts < <(grep -E '^ *--- (PASS|FAIL|SKIP)' log | awk '
    { match($0, /-/); if (RSTART <= indent) seen[kind]++; indent = RSTART; kind = $2 }
    END { seen[kind]++; print seen["PASS:"] + seen["FAIL:"], seen["FAIL:"] + seen["SKIP:"], seen["SKIP:"] + 0 }')
  summary "${counts[@]}"
  return "$status"
}
