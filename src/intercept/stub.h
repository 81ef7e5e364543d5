#pragma once
/*
 * What the stub (stub.c) and the server tell each other: packets over a SOCK_SEQPACKET pair.
 *
 *     stub to server   STUB_HELLO    the stub is in place; value: bits of the descriptors 0 to 15
 *                                    that come with it, lowest first
 *                      STUB_SIGNAL   value: number of a signal it got, with STUB_KERNEL if
 *                                    the kernel sent it (a terminal does so through it)
 *     server to stub   STUB_END      value: status of wait() to end with; text for the descriptor
 *                                    that comes with it may follow
 *                      STUB_STOP     stop, as the program did
 */

#include <stdint.h>

#define STUB_FDS 16
#define STUB_KERNEL 0x100
#define STUB_TEXT_MAX 4096

enum stub_kind { STUB_HELLO = 1, STUB_SIGNAL, STUB_END, STUB_STOP };

struct stub_packet {
    uint32_t kind;
    int32_t value;
};
