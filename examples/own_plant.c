/* A plant in C that is called at each tick: a first-order lag of 20 ms.
 *
 *     cc -O2 -shared -fPIC -I../python/tcpsbed/data -o libplant.so own_plant.c -lm      scenario: plant = "./libplant.so:lag"
 *
 * in->x[0] is the command k. out->y[0] is the answer y, 1 at rest with k = 1.
 */
#include <math.h>
#include <stdlib.h>

#include "tcps_hook.h"

typedef struct {
    double x, u; /* state and input, both 0 at rest; the input holds between two ticks */
    int64_t then_ns;
    int begun;
} motion;

void *lag_init(const char *params_json) {
    (void)params_json;
    return calloc(1, sizeof(motion));
}

int lag(void *state, const tcps_in *in, tcps_out *out) {
    motion *m = state;
    double dt = m->begun ? (double)(in->now_ns - m->then_ns) * 1e-9 : 0.0;
    m->x = m->u + (m->x - m->u) * exp(-dt / 0.02);
    m->u = in->x[0] - 1.0;
    m->then_ns = in->now_ns;
    m->begun = 1;
    out->y[0] = 1.0 + m->x;
    out->n = 1;
    return TCPS_EMIT;
}

void lag_free(void *state) {
    free(state);
}
