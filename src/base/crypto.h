#pragma once
/* Initialises libsodium, which gives us random bytes, SHA-256, HMAC, SipHash and comparisons. */

/* Finds the source of random bytes, once, before there are threads. Aborts if there is none. */
void crypto_init(void);
