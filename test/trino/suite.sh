# shellcheck shell=bash disable=SC2034,SC2154 # What is unused or unset here is not in scripts/conformance.
# A Trino server and its Python client: a warehouse of files and one on S3. scripts/conformance says how a
# suite is written, pom.xml where the server comes from.

s3_trino=yes
trino_max=600 # seconds
trino_java_min=25

install_trino() {
  trino_java >/dev/null
  need mvn maven
  install_jars trino
  install_venv trino
}

# trino_java prints the path of a Java that Trino can run on, which need not be the machine's default.
trino_java() {
  local java version
  for java in "${JAVA_HOME:-}/bin/java" "$(command -v java)" /usr/lib/jvm/*/bin/java; do
    [[ -x $java ]] || continue
    version=$("$java" -XshowSettings:properties -version 2>&1 | awk '$1 == "java.specification.version" { print int($3) }')
    if ((${version:-0} >= trino_java_min)) && [[ -x ${java%java}javac ]]; then
      printf '%s\n' "$java"
      return
    fi
  done
  die 2 "Trino needs a JDK $trino_java_min or newer: in JAVA_HOME, PATH or /usr/lib/jvm"
}

run_trino() {
  local java status=0
  java=$(trino_java)
  create_warehouse trino
  create_s3_warehouse trinos3

  bounded "$trino_max" env --chdir="$suite" CLASSPATH="$(jars trino)" \
    S3_ENDPOINT="$s3_url" S3_REGION="$s3_region" S3_ACCESS_KEY="$s3_access_key" S3_SECRET_KEY="$s3_secret_key" \
    "$(venv trino)/bin/python" -m pytest --uri "$url" --warehouse trino --s3-warehouse trinos3 \
    --java "$java" --home "$out/trino" --junitxml "$out/report.xml" . || status=$?
  if ((status != 0)); then
    grep -E 'ERROR|Exception' "$out/trino/server.log" | tail -n 40 || true
  fi
  ((status != 124)) || die 1 "pytest was not done within $trino_max s"
  summary_of_junit "$out/report.xml"
  return "$status"
}
