/* A predictor in C: the last sample holds.
 *
 *     cc -O2 -shared -fPIC -I../../python/tcpsbed/data -o libzoh.so zoh.c          scenario: "./libzoh.so:zoh"
 */
#include <stdlib.h>
#include <string.h>

#include "tcps_hook.h"

typedef struct {
    uint32_t n; /* 0 before the first sample */
    double last[64];
} memory;

void *zoh_init(const char *params_json) {
    (void)params_json;
    return calloc(1, sizeof(memory));
}

int zoh(void *state, const tcps_in *in, tcps_out *out) {
    memory *m = state;
    if (in->present) {
        m->n = in->n < 64 ? in->n : 64;
        memcpy(m->last, in->x, m->n * sizeof(double));
    }
    if (m->n == 0)
        return TCPS_NOTHING;
    out->n = m->n < out->cap ? m->n : out->cap;
    memcpy(out->y, m->last, out->n * sizeof(double));
    return TCPS_EMIT;
}

void zoh_free(void *state) {
    free(state);
}
