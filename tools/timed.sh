#!/usr/bin/env bash
# tools/timed.sh NAME BUDGET_S COMMAND... : runs the command and says how long it took against its budget.
set -uo pipefail
name=$1 budget=$2
shift 2
begin=$SECONDS
"$@"
status=$?
took=$((SECONDS - begin))
over=
if [ "$took" -gt "$budget" ]; then over=', over its budget'; fi
printf '[time] %s: %d s of %d s%s\n' "$name" "$took" "$budget" "$over"
exit "$status"
