#!/bin/sh
# Remove from a virtual environment what no process of the image loads: `slim.sh FOLDER`.
set -eu
cd "$1"/lib/python3*/site-packages

# Tests, headers, C and Cython sources, and source maps of the packages.
find . -depth -type d -name tests -exec rm -r {} +
find . -type f \( -name '*.h' -o -name '*.hpp' -o -name '*.c' -o -name '*.cpp' -o -name '*.pyx' \
  -o -name '*.pxd' -o -name '*.a' -o -name '*.js.map' -o -name '*.css.map' \) -delete
# Descriptions of every API of Google; dagster-gcp calls Dataproc through them, and nothing else.
find googleapiclient/discovery_cache/documents -type f ! -name 'dataproc.*' -delete
# The part of pyarrow that its other parts do not link.
rm -f pyarrow/*flight*
# Symbol tables, which the dynamic linker does not read. Libraries that auditwheel has patched
# (*.libs) stay as they are: strip can break them.
find . -type f -name '*.so*' ! -path '*.libs/*' -exec strip --strip-unneeded {} +
