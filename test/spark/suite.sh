# shellcheck shell=bash disable=SC2034,SC2154 # What is unused or unset here is not in scripts/conformance.
# Spark with iceberg-spark-runtime, in a warehouse of files and in one on S3. scripts/conformance says
# how a suite is written.

s3_spark=yes
spark_max=900 # seconds

# Spark fetches the packages itself, into a cache that `spark-sql --packages` and the tests then share.
install_spark() {
  local ivy=$cache/spark/ivy packages package group artifact version missing=
  need_java 17
  install_venv spark

  mapfile -t packages <"$suite/packages.txt"
  for package in "${packages[@]}"; do
    IFS=: read -r group artifact version <<<"$package"
    [[ -e $ivy/jars/${group}_$artifact-$version.jar ]] || missing=yes
  done
  [[ -n $missing ]] || return 0
  PATH=$(venv spark)/bin:$PATH SPARK_LOCAL_IP=127.0.0.1 spark-sql \
    --packages "$(IFS=,; echo "${packages[*]}")" --conf spark.jars.ivy="$ivy" --conf spark.ui.enabled=false \
    --conf spark.sql.catalogImplementation=in-memory -e 'SELECT 1' ||
    die 2 "Spark could not fetch ${packages[*]}"
}

run_spark() {
  local status=0
  create_warehouse spark
  create_s3_warehouse spark-s3

  bounded "$spark_max" env --chdir="$suite" PATH="$(venv spark)/bin:$PATH" \
    AWS_ACCESS_KEY_ID="$s3_access_key" AWS_SECRET_ACCESS_KEY="$s3_secret_key" \
    python -m pytest --uri "$url" --warehouse spark --s3-warehouse spark-s3 --ivy "$cache/spark/ivy" \
    --junitxml "$out/report.xml" . || status=$?
  ((status != 124)) || die 1 "pytest was not done within $spark_max s"
  summary_of_junit "$out/report.xml"
  return "$status"
}
