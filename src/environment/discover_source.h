#pragma once
/* The file calls of a discovery: made by the thread itself, or by a helper in a sandbox. */

#include "environment/discover.h"
#include "files/fs_job.h"

/* The source of a job; confined if its `confined` was begun. Borrows the job. */
struct discover_source discover_source_of(struct fs_job *j);
