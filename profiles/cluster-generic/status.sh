#!/bin/sh
# status.sh JOB: print running, success or failed.
# A job that is unknown to the controller and to the accounting counts as failed. It is tried again, and the runs that it
# had finished come from the store.
state=$(scontrol --oneliner show job "$1" 2>/dev/null | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p')
[ -n "$state" ] || state=$(sacct -X -n -j "$1" -o State%20 2>/dev/null | tr -d ' +' | head -n 1)
case "$state" in
    COMPLETED) echo success ;;
    PENDING | CONFIGURING | RUNNING | COMPLETING | SUSPENDED | REQUEUED) echo running ;;
    *) echo failed ;;
esac
