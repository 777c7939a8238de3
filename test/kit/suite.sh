# shellcheck shell=bash disable=SC2154 # scripts/conformance sets what is not set here.
# The two classes of Apache Iceberg's REST compatibility kit, and classes of ours: two on the same base,
# with everything switched on, and those in which Java's client is watched through a relay. Each of the
# first four runs in a warehouse of its own: the kit refuses one where an earlier run has left its
# namespaces. scripts/conformance says how a suite is written.

kit_max=600 # seconds, for each run of JUnit

# The kit's own classes ask for locations below file:/tmp and cannot be told otherwise. These two are all
# they use.
kit_dirs=(/tmp/ns/tbl /tmp/newdb/newtable)

# Tests of one warehouse may run at once, and most of the time of those that lose an answer is a wait.
kit_concurrent=(
  --config junit.jupiter.execution.parallel.enabled=true
  --config junit.jupiter.execution.parallel.mode.default=concurrent
  --config junit.jupiter.execution.parallel.config.strategy=fixed
  --config junit.jupiter.execution.parallel.config.fixed.parallelism=8
)

install_kit() {
  need_java 17
  install_jars kit
}

# clear_kit_dirs removes what the kit wrote, but not a folder that was there before.
clear_kit_dirs() {
  local dir
  for dir in "${made_dirs[@]}"; do
    rm -rf "$dir"
    rmdir "$(dirname "$dir")" 2>/dev/null || true # Stays when something else is in it.
  done
}

# junit NAME RUN_MIN SELECTOR... runs tests in a fresh warehouse of that name; skipped.txt says which of
# them do not run, and at least RUN_MIN must.
junit() {
  local name=$1 run_min=$2 began=$EPOCHREALTIME status=0
  shift 2
  create_warehouse "$name" --allow file:/tmp --allow "file:$TMPDIR"

  # The kit takes every system property for a property of the catalog too, so uri and warehouse have
  # no prefix. rck.local=false keeps it from starting, and testing, its own server.
  bounded "$kit_max" java -cp "$(jars kit):$out/classes" \
    -Djava.io.tmpdir="$TMPDIR" -Dfile.encoding=UTF-8 -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
    -Drck.local=false -Drck.requires-namespace-create=true \
    -Drck.supports-serverside-retry=true -Drck.supports-names-with-dot=true \
    -Duri="$url" -Dwarehouse="$name" \
    org.junit.platform.console.ConsoleLauncher execute "$@" \
    --reports-dir "$out/$name" --details=none --disable-banner --disable-ansi-colors \
    >"$out/$name.log" 2>&1 || status=$?

  # JUnit ends with 1 when a test failed, which the report tells better.
  if ((status > 1)); then
    tail -n 80 "$out/$name.log"
    die 1 "JUnit ended with status $status (124: not done within $kit_max s)"
  fi
  "$suite/report" "$name" "$out/$name/TEST-junit-jupiter.xml" "$suite/skipped.txt" "$run_min" || failed+=("$name")
  summary_of_junit "$out/$name/TEST-junit-jupiter.xml"
  say "$name: $(seconds_since "$began") s"
}

run_kit() {
  local dir failed=() made_dirs=() classes
  exec 9>"$cache/kit/lock" # Two runs would meet in the fixed folders.
  flock --wait "$lock_max" 9 || die 2 "another run has held $cache/kit/lock for $lock_max s"
  trap clear_kit_dirs EXIT
  trap 'exit 143' TERM
  for dir in "${kit_dirs[@]}"; do
    if [[ -e $dir ]]; then
      say "$dir was there before this run: it is used, and left in place"
    else
      made_dirs+=("$dir")
    fi
  done
  mkdir "$out/classes"
  javac -cp "$(jars kit)" -d "$out/classes" "$suite"/java/*.java

  junit kit-tables 97 --select-class org.apache.iceberg.rest.RESTCompatibilityKitCatalogTests
  junit kit-views 50 --select-class org.apache.iceberg.rest.RESTCompatibilityKitViewCatalogTests
  junit kit-tables-full 102 --select-class io.landfast.kit.FullCatalogTests
  junit kit-views-full 50 --select-class io.landfast.kit.FullViewCatalogTests
  classes=({Transaction,LostAnswer,Load,Page,Register,Name,Format,Purge}Tests)
  junit kit-client 92 "${classes[@]/#/--select-class=io.landfast.kit.}" "${kit_concurrent[@]}"
  ((${#failed[@]} == 0)) || die 1 "failed: ${failed[*]}"
}
