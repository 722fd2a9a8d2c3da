#!/bin/bash
# Installs simt and pytest. SIMT: what pip installs; EXTRAS: its extras; REQUIREMENTS: a file, or empty.
set -euo pipefail
if [ -n "${EXTRAS:-}" ]; then SIMT="$SIMT[$EXTRAS]"; fi
python -m pip install --quiet pytest pytest-xdist "$SIMT"
if [ -n "${REQUIREMENTS:-}" ]; then python -m pip install --quiet -r "$REQUIREMENTS"; fi
