#include "base/editdist.h"

#include "base/util.h"

size_t editdist(struct str a, struct str b) {
    size_t row[EDITDIST_MAX + 1];
    if (a.n > EDITDIST_MAX || b.n > EDITDIST_MAX)
        return EDITDIST_MAX;
    for (size_t j = 0; j <= b.n; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            size_t replace = diagonal + (a.p[i - 1] != b.p[j - 1]);
            diagonal = row[j];
            row[j] = MIN(replace, MIN(row[j - 1], row[j]) + 1);
        }
    }
    return row[b.n];
}
