#!/bin/sh
# Creates the virtual environment $VENV with $PYTHON, else with the first Python on the path that is new enough and complete.
set -eu

if "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
    exit 0
fi

too_old="no Python was found"
incomplete=""
for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        too_old="$python is $version"
    elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        incomplete="$python ($version) cannot make virtual environments"
    else
        echo "$VENV: Python $version"
        exec "$python" -m venv --clear "$VENV"
    fi
done

if [ -n "$incomplete" ]; then
    echo "dagbok: $incomplete. On Debian and Ubuntu: apt install python3-venv. Then repeat the command." >&2
else
    echo "dagbok: needs Python 3.11 or newer; $too_old. Install one, or name it: make install PYTHON=/path/to/python" >&2
fi
exit 1
