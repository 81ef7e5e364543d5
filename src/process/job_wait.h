#pragma once
/* Requests that wait on a job: reads for news, writes for room. */

#include "process/job.h"

/* Answers the reads that now have something to say. */
void job_wake_waits(struct job *j);

/* Moves waiting writes on while there is room; fails them after a terminate. */
void job_pump_writes(struct job *j);

/* Answers all reads and waits, room or not: the job is about to go, its output is gone already. */
void job_expire_waits(struct job *j);

/* Drops everything that waits, without an answer: the session is going away. */
void job_fail_waiters(struct job *j);
