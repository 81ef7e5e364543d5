#pragma once
/* The mask of client frames. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * dst = src XOR mask, where src[0] meets mask[phase % 4]. dst may be src, or a place before it.
 * True when every byte of dst is known to be of the Base64 alphabet (A-Z a-z 0-9 + /):
 * seen in passing where the machine can, else false.
 */
bool ws_mask_undo(char *dst, const char *src, size_t n, const uint8_t mask[4], uint64_t phase);

/*
 * The same for Base64, which is decoded: 48 bytes at dst for each 64 of src, as far as whole 64 are
 * of the alphabet and the machine can. Returns the bytes of src that were used. At dst it may write
 * as many.
 */
size_t ws_mask_undo_base64(char *dst, const char *src, size_t n, const uint8_t mask[4],
                           uint64_t phase);
