#pragma once
/* The commit that the program was made from; the build writes it (tools/commit, commit.c.in). */

extern const char commit_name[];
