#include "base/crypto.h"

#include <sodium.h>
#include <stdlib.h>

/*
 * Replaces sodium_init(), which also picks the fastest code for elliptic curves, password hashes
 * and ciphers, and so links all of them (150 kB) into a static program. Nothing we use has
 * alternatives to pick from; the source of random bytes is its only state.
 */
void crypto_init(void) {
    randombytes_stir();
}

/* libsodium calls this when it is misused. Its own version shares an object file with
 * sodium_init(), and also aborts unless a handler is set. Weak, so that a test may link both. */
__attribute__((weak)) void sodium_misuse(void) {
    abort();
}
