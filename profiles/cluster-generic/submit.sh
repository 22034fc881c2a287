#!/bin/sh
# submit.sh RULE THREADS MEM_MB MINUTES GPUS SCRIPT: submit a job and print its number.
# `./run` finds jobs that a killed head has left by the comment and the working directory.
set -eu
gpus=$5
[ "$gpus" -gt 0 ] && set -- "$@" "--gres=gpu:$gpus"
script=$6
rule=$1 threads=$2 memory=$3 minutes=$4
shift 6
mkdir -p .snakemake/cluster_logs
exec sbatch --parsable --job-name="mdpu-$rule" --comment="rule_$rule" --chdir="$PWD" \
    --ntasks=1 --cpus-per-task="$threads" --mem="$memory" --time="$minutes" \
    --output=.snakemake/cluster_logs/%j.log "$@" "$script"
# Your partition and account: add --partition=gpu --account=my_account above.
