# shellcheck shell=bash disable=SC2154 # scripts/conformance sets what is not set here.
# PyIceberg with PyArrow: our tests, in a warehouse of files and in one on S3, and PyIceberg's own tests
# against a REST catalog, in another one on S3. scripts/conformance says how a suite is written.

pyiceberg_max=600 # seconds, for each run of pytest

# shellcheck disable=SC2034 # Read by scripts/conformance.
s3_pyiceberg=yes

# PyIceberg's own tests, as they are in its source package on PyPI. upstream/not_run.txt says which of them
# do not run; at least so many must.
upstream_run_min=560

# upstream_tests prints the folder of PyIceberg's own tests.
upstream_tests() { printf '%s/pyiceberg/tests-%s' "$cache" "$(sed -n 's/^pyiceberg==//p' "$suite/requirements.txt")"; }

install_pyiceberg() {
  local tests
  install_venv pyiceberg

  tests=$(upstream_tests)
  if [[ -e $tests/complete ]]; then
    return
  fi
  rm -rf "$tests"
  mkdir -p "$tests"
  "$(venv pyiceberg)/bin/python" -m pip download -q --disable-pip-version-check --no-deps --no-binary pyiceberg \
    -d "$out" "pyiceberg==${tests##*-}" || die 2 "pip could not fetch the source package of PyIceberg"
  tar -xzf "$out"/pyiceberg-*.tar.gz -C "$tests" --strip-components 1 --wildcards '*/tests' '*/pyproject.toml' ||
    die 2 "the source package of PyIceberg has no tests"
  touch "$tests/complete"
}

# pytest FOLDER ARGUMENT... runs tests and returns their status. PYICEBERG_HOME is where PyIceberg looks
# first for a configuration file; there is none.
pytest() {
  local folder=$1 status=0
  shift
  bounded "$pyiceberg_max" env --chdir="$folder" PYICEBERG_HOME="$out" PYTHONPATH="$suite/upstream" \
    AWS_ACCESS_KEY_ID="$s3_access_key" AWS_SECRET_ACCESS_KEY="$s3_secret_key" \
    "$(venv pyiceberg)/bin/python" -m pytest "$@" || status=$?
  ((status != 124)) || die 1 "pytest was not done within $pyiceberg_max s"
  return "$status"
}

run_pyiceberg() {
  local status=0
  create_warehouse pyiceberg
  create_s3_warehouse pyiceberg-s3
  create_s3_warehouse pyiceberg-upstream

  pytest "$suite" --uri "$url" --warehouse pyiceberg --s3-warehouse pyiceberg-s3 --junitxml "$out/report.xml" . || status=$?
  summary_of_junit "$out/report.xml"

  # PyIceberg's tests write some files into a bucket of this name.
  mkdir -p "$work/s3/buckets/warehouse"
  pytest "$(upstream_tests)" -q -p no:cacheprovider -p landfast --landfast "$url" --landfast-warehouse pyiceberg-upstream \
    --run-min "$upstream_run_min" -m integration --junitxml "$out/upstream.xml" tests/integration || status=$?
  summary_of_junit "$out/upstream.xml"
  return "$status"
}
