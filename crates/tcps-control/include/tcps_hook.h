/* Hooks of tcpsbed in C: user code in the path of a sample.
 *
 * A hook NAME in a shared library consists of
 *
 *     int   NAME(void *state, const tcps_in *in, tcps_out *out);
 *     void *NAME_init(const char *params_json);      optional: makes the state, which is NULL without it;
 *                                                    returning NULL refuses the parameters
 *     void  NAME_free(void *state);                  optional
 *
 * and is named in a scenario as "./libmine.so:NAME". It is called from one thread, must not keep any of the pointers
 * in `in` and `out`, and must not block. Times are in nanoseconds since the start of the run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TCPS_HOOK_H
#define TCPS_HOOK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a hook returns; any negative number is an error that the report counts. */
enum { TCPS_EMIT = 0, TCPS_NOTHING = 1 };

/* What a hook is given. */
typedef struct {
    int64_t now_ns;       /* the node's clock */
    int64_t origin_ns;    /* when the sample was made, on the clock of the node that made it */
    uint32_t index;       /* number of the sample within its flow */
    uint16_t flow;        /* number of the flow */
    uint16_t present;     /* 1: there is a sample; 0: a periodic stage ticks without a new one */
    uint32_t n;           /* values in x */
    uint32_t n_bytes;     /* bytes in bytes */
    uint32_t n_other;     /* values in other */
    uint16_t tagged;      /* 1: an echo command rides on the sample, do not keep it back; else 0 */
    uint16_t merging;     /* samples that the transport on the way out merges into a packet now; else 1 */
    const double *x;      /* the decoded sample */
    const uint8_t *bytes; /* the coded sample */
    const double *other;  /* the newest values of other flows seen at this component: those that the scenario names, or the
                           * newest of the other direction */
    double allowed_bps;   /* what the transport on the way out allows the flow, in bit/s; negative where it does not say (it came
                           * last: a library that was built without it runs as before) */
} tcps_in;

/* What a hook gives back: it writes at most cap values or cap_bytes bytes and says how many. */
typedef struct {
    uint32_t n;         /* values written */
    uint32_t cap;       /* room in y */
    uint32_t n_bytes;   /* bytes written */
    uint32_t cap_bytes; /* room in bytes */
    double *y;          /* values out */
    uint8_t *bytes;     /* bytes out */
} tcps_out;

/* Queue disciplines: int NAME(void *state, tcps_queue *call), with NAME_init and NAME_free as above, named in a scenario
 * as discipline = "./libmine.so:NAME". What a call is about; packets are known by their numbers. */
enum { TCPS_ARRIVES = 0, TCPS_LEAVES = 1 };

typedef struct {
    int64_t now_ns;
    uint32_t what;    /* TCPS_ARRIVES, or TCPS_LEAVES: the line is free, and packets wait */
    uint32_t packet;  /* the number of the packet that arrives; where one leaves, write that of the one that goes and
                       * return TCPS_EMIT, or TCPS_NOTHING if all were dropped */
    uint32_t bytes;   /* its size on the wire */
    uint16_t flow;    /* its flow, or 32768 plus the number of the traffic entry */
    uint8_t dscp;     /* its code point */
    uint8_t reserved;
    uint32_t cap;     /* room in drops */
    uint32_t dropped; /* numbers written to drops */
    uint32_t *drops;  /* packets that are thrown out */
} tcps_queue;

/* Loss models: int NAME(void *state, const tcps_loss *start) returns TCPS_EMIT, or TCPS_NOTHING for a packet that is
 * lost, named as loss = "./libmine.so:NAME". */
typedef struct {
    int64_t now_ns;   /* when its first bit is put on the line */
    uint32_t packet;  /* its number on this line, from 0 */
    uint32_t bytes;   /* its size on the wire */
    uint16_t flow;    /* its flow, or 32768 plus the number of the traffic entry */
    uint8_t dscp;     /* its code point */
    uint8_t reserved[5];
} tcps_loss;

/* Delay models: int NAME(void *state, tcps_delay *packet) writes the extra delay of a packet and returns TCPS_EMIT, named
 * as jitter = "./libmine.so:NAME". */
typedef struct {
    int64_t now_ns;   /* when it is wholly on the line */
    int64_t delay_ns; /* written: how much later it arrives, from 0 to an hour */
    uint32_t packet;  /* its number on this line, from 0; a copy made by the link has one of its own */
    uint32_t bytes;   /* its size on the wire */
    uint16_t flow;    /* its flow, or 32768 plus the number of the traffic entry */
    uint8_t dscp;     /* its code point */
    uint8_t reserved[5];
} tcps_delay;

/* Background sources: int NAME(void *state, tcps_source *next) writes the next packet and returns TCPS_EMIT, or
 * TCPS_NOTHING after the last, named as kind = "./libmine.so:NAME". */
typedef struct {
    int64_t at_ns;  /* time since the start of the source, not before that of the last packet */
    uint32_t bytes; /* size on the wire, 1 to 65535 */
    uint32_t reserved;
} tcps_source;

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L && UINTPTR_MAX == UINT64_MAX
_Static_assert(sizeof(tcps_in) == 72 && offsetof(tcps_in, x) == 40 && offsetof(tcps_in, allowed_bps) == 64, "layout of tcps_in");
_Static_assert(sizeof(tcps_out) == 32 && offsetof(tcps_out, y) == 16, "layout of tcps_out");
_Static_assert(sizeof(tcps_queue) == 40 && offsetof(tcps_queue, drops) == 32, "layout of tcps_queue");
_Static_assert(sizeof(tcps_loss) == 24 && offsetof(tcps_loss, flow) == 16, "layout of tcps_loss");
_Static_assert(sizeof(tcps_delay) == 32 && offsetof(tcps_delay, flow) == 24, "layout of tcps_delay");
_Static_assert(sizeof(tcps_source) == 16, "layout of tcps_source");
#endif

#ifdef __cplusplus
}
#endif

#endif
