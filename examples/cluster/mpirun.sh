#!/usr/bin/env bash
# mpirun.sh DATA RUN: trains with a rank on each machine in the file hosts, from the last checkpoint in RUN if there is one.
set -euo pipefail
data=${1:?usage: mpirun.sh DATA RUN} run=${2:?usage: mpirun.sh DATA RUN}
hosts=${HOSTS:-$(dirname "$0")/hosts}

# Rank 0 has eight seconds to save when another rank is lost.
export OMPI_MCA_odls_base_sigkill_timeout=12
# Without -n, as many ranks as there are slots. Threads of a rank are not bound to one core.
exec mpirun --hostfile "$hosts" --bind-to none \
  tercel train "$data" --model dlrm --out "$run" --resume auto --threads "${THREADS:-16}"
