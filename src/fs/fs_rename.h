#pragma once
/* Renames files and directories. */

#include "fs/fs.h"

/*
 * fs/rename (extension): atomic, within one file system, the last component never followed.
 * Without `replace` an existing destination is EEXIST; where the file system cannot do that by
 * itself (RENAME_NOREPLACE) the call looks at the destination first, and replaces one that appears
 * after that. "/" is EBUSY. 0 or -errno with e set.
 */
MUST_CHECK int fs_rename(const char *source, const char *destination, bool replace, struct err *e);

/* fs_rename() relative to directories (AT_FDCWD for full paths), without "/". 0 or -errno. */
MUST_CHECK int fs_rename_at(int source_dir, const char *source, int destination_dir,
                            const char *destination, bool replace);
