#!/bin/bash
# The head as a job of its own, for sites where nothing may run on a login node for days:
#
#   sbatch --partition=long --time=1-00:00:00 profiles/slurm/head.sh paper
#
# Before it starts, it queues a successor, which waits for its end. When the time limit ends the head, the successor
# takes over: it cancels the jobs of this folder that still run, and submits them again, to go on from their checkpoints.
# Once all is done, or has failed for good, the head cancels the successor.
#SBATCH --job-name=mdpu-head
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --time=1-00:00:00
#SBATCH --output=head-%j.log
set -u
: "${SLURM_JOB_ID:?submit it: sbatch profiles/slurm/head.sh paper}"
cd "${SLURM_SUBMIT_DIR:?}" || exit 1
squeue --noheader --me --format='%A %j %Z' | while read -r job name folder; do
    [ "$folder" = "$PWD" ] && [ "$name" != mdpu-head ] && scancel "$job"
done
limit=$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%l)
successor=$(sbatch --parsable --dependency="afterany:$SLURM_JOB_ID" --partition="$SLURM_JOB_PARTITION" --time="$limit" \
    profiles/slurm/head.sh "$@") || exit 1
# At the time limit SLURM asks all processes to end and kills those that are left half a minute later. This shell outlives
# the others, so that it can tell that end from Snakemake's own.
out_of_time=
trap 'out_of_time=yes' TERM
./run "$@" --profile profiles/slurm
status=$?
if [ -z "$out_of_time" ] && [ "$status" -ne 143 ]; then # 143: SIGTERM, but only to ./run
    scancel "${successor%%;*}"
fi
exit "$status"
