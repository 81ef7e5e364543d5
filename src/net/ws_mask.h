#pragma once
/* The mask of client frames. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * dst = src XOR mask, where src[0] meets mask[phase % 4]. dst may be src, or a place before it.
 * True when every byte of dst is of the Base64 alphabet (A-Z a-z 0-9 + /); always false without
 * AVX2, where the check would cost too much.
 */
bool ws_mask_undo(char *dst, const char *src, size_t n, const uint8_t mask[4], uint64_t phase);

/*
 * Unmasks and decodes Base64: 48 bytes at dst for each 64 of src, up to the first 64 that are not
 * all of the alphabet. Returns the bytes of src used, 0 without AVX2. It may write as many to dst.
 */
size_t ws_mask_undo_base64(char *dst, const char *src, size_t n, const uint8_t mask[4],
                           uint64_t phase);
