#pragma once
/* The mask of client frames. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * dst = src XOR mask, where src[0] meets mask[phase % 4]. dst and src are the same or do not
 * overlap. True when every byte of dst is known to be of the Base64 alphabet (A-Z a-z 0-9 + /):
 * seen in passing where the machine can, else false.
 */
bool ws_unmask(char *dst, const char *src, size_t n, const uint8_t mask[4], uint64_t phase);
