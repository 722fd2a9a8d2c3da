#!/bin/bash
# Runs the tests. TESTS, GPU, SARIF, JUNIT and ARGUMENTS as in action.yml.
set -euo pipefail
# shellcheck disable=SC2086  # several paths, several arguments
python -m pytest ${TESTS:-.} --simt-gpu "${GPU:-h100}" --simt-sarif "${SARIF:-simt.sarif}" \
  --junitxml "${JUNIT:-simt-junit.xml}" -n auto ${ARGUMENTS:-}
