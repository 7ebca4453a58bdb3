"""How many partitions one run of a backfill takes."""

import warnings

import dagster as dg

# Dagster calls this beta; the note is for us, who pin it in tests, not for a reader of logs.
warnings.filterwarnings("ignore", message="Parameter `backfill_policy`")

ONE_A_RUN = dg.BackfillPolicy.multi_run(1)
FOUR_A_RUN = dg.BackfillPolicy.multi_run(4)
SEVEN_A_RUN = dg.BackfillPolicy.multi_run(7)
