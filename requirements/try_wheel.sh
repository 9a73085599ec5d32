#!/bin/sh
# Installs the built wheel in an empty environment, away from the source tree, and runs the example there.
# $1: a Python that has the development requirements.
set -eu

python=$(command -v "$1")
here=$(pwd)
case $python in /*) ;; *) python=$here/$python ;; esac
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$python" -m build --no-isolation --outdir "$folder/dist" . >"$folder/build.log" 2>&1 || { cat "$folder/build.log" >&2; exit 1; }
"$python" -m venv "$folder/venv"
pip="$folder/venv/bin/python -m pip --quiet --disable-pip-version-check"
$pip install --require-hashes -r requirements/runtime.txt
$pip install --no-deps "$folder"/dist/dagbok-*.whl
$pip check

cp examples/dynamic_dag.py "$folder"
cd "$folder"
unset PYTHONPATH
DAGBOK_DATA=$folder/data "$folder/venv/bin/python" -I dynamic_dag.py
"$folder/venv/bin/dagbok" --version
