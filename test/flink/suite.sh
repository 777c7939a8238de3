# shellcheck shell=bash disable=SC2034,SC2154 # What is unused or unset here is not in scripts/conformance.
# Flink's SQL with Iceberg's connector, in a warehouse of files and in one on S3. scripts/conformance says
# how a suite is written.

s3_flink=yes
flink_max=600 # seconds

install_flink() {
  need_java 17
  install_jars flink
}

run_flink() {
  local package status=0 opens=()
  # Flink's own scripts start it with these.
  for package in lang lang.reflect net nio text time util util.concurrent util.concurrent.atomic util.concurrent.locks; do
    opens+=("--add-opens=java.base/java.$package=ALL-UNNAMED")
  done
  create_warehouse flink
  create_s3_warehouse flink-s3

  mkdir "$out/classes"
  javac -cp "$(jars flink)" -d "$out/classes" "$suite/FlinkTests.java"
  bounded "$flink_max" env AWS_ACCESS_KEY_ID="$s3_access_key" AWS_SECRET_ACCESS_KEY="$s3_secret_key" java -cp "$(jars flink):$out/classes" "${opens[@]}" \
    -Xmx1g -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.io.tmpdir="$TMPDIR" -Dfile.encoding=UTF-8 \
    -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
    -Duri="$url" -Dwarehouse=flink -Ds3warehouse=flink-s3 -Dpage="$root/docs/clients/flink.md" \
    org.junit.platform.console.ConsoleLauncher execute --select-class io.landfast.flink.FlinkTests \
    --reports-dir "$out/report" --details=tree --disable-banner --disable-ansi-colors \
    >"$out/flink.log" 2>&1 || status=$?
  if ((status != 0)); then
    tail -n 80 "$out/flink.log"
  fi
  ((status <= 1)) || die 1 "JUnit ended with status $status (124: not done within $flink_max s)"
  summary_of_junit "$out/report/TEST-junit-jupiter.xml"
  return "$status"
}
