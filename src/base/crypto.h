#pragma once
/* Start of libsodium, of which we use random bytes, SHA-256, HMAC, SipHash and comparisons. */

/* Finds the source of random bytes, once, before there are threads. Aborts where there is none. */
void crypto_init(void);
