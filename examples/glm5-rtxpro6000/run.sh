#!/bin/sh
# Replays the founding story: SIMULATED, on this machine's CPU, in a few minutes.
#     ./run.sh [FOLDER]        a new folder; one that holds a replay already is carried on
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-assay-glm5-$(date +%Y%m%d-%H%M%S)}
mkdir -p "$folder"
[ -e "$folder/assay.toml" ] || cp -R "$here/question/." "$folder"
cd "$folder"      # the world's path in assay.toml is looked up from here
assay run
