#include "base/crypto.h"

#include <sodium.h>
#include <stdlib.h>

/*
 * In place of sodium_init(), which also picks the fastest code for elliptic curves, password hashes
 * and ciphers, and so makes all of them (150 kB) part of a static program. Nothing we use is picked
 * from several, and the source of random bytes is the only state.
 */
void crypto_init(void) {
    randombytes_stir();
}

/*
 * What libsodium calls when it is used wrongly. Its own is in the same object as sodium_init(), and
 * does the same where no handler is set; weak, so that a test may have both.
 */
__attribute__((weak)) void sodium_misuse(void) {
    abort();
}
