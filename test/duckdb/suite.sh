# shellcheck shell=bash disable=SC2154 # scripts/conformance sets what is not set here.
# DuckDB with its iceberg extension, in a warehouse of files and in one on S3. scripts/conformance says
# how a suite is written.

duckdb_max=600 # seconds

# shellcheck disable=SC2034 # Read by scripts/conformance.
s3_duckdb=yes

install_duckdb() {
  install_venv duckdb
}

run_duckdb() {
  local status=0
  create_warehouse duckdb
  create_s3_warehouse duckdb-s3

  # PYICEBERG_HOME is where PyIceberg looks first for a configuration file, and HOME where DuckDB looks
  # for extensions and secrets; there are none.
  bounded "$duckdb_max" env --chdir="$suite" PYICEBERG_HOME="$out" HOME="$out" \
    AWS_ACCESS_KEY_ID="$s3_access_key" AWS_SECRET_ACCESS_KEY="$s3_secret_key" \
    "$(venv duckdb)/bin/python" -m pytest --uri "$url" --warehouse duckdb --s3-warehouse duckdb-s3 \
    --junitxml "$out/report.xml" . || status=$?
  ((status != 124)) || die 1 "pytest was not done within $duckdb_max s"
  summary_of_junit "$out/report.xml"
  return "$status"
}
