#!/bin/sh
# Pin what a framework's environment holds now: frameworks/freeze.sh langchain
set -e
echo "# What \`make adapters\` installs for its tests; made by frameworks/freeze.sh." > "frameworks/requirements/$1.txt"
".adapters/$1/bin/python" -m pip freeze --disable-pip-version-check --exclude-editable --exclude toolfold \
    | grep -v ' @ ' >> "frameworks/requirements/$1.txt"
