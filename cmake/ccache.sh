#!/bin/sh
# Runs a compiler by ccache: cmake/ccache.sh ccache COMPILER ARGUMENT...
#
# The old precompiled header is taken away before a new one is compiled. ccache would take "-include X" for a use of the X.gch that lies there,
# would hash it in the place of the headers that it was made from, and could give back what another change of them became.
for word; do
  case $word in *.gch) rm -f -- "$word" ;; esac
done
# Objects do not depend on the build directory that they are made in: several of them share one cache.
CCACHE_NOHASHDIR=1 exec "$@"
