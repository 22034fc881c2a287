#!/bin/sh
# cancel.sh JOB...: cancel jobs.
exec scancel "$@"
