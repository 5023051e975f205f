/* A queue discipline in C: short packets go first.
 *
 *     cc -O2 -shared -fPIC -I../python/tcpsbed/data -o libqueue.so own_queue.c      scenario: "./libqueue.so:shortest"
 */
#include <stdlib.h>

#include "tcps_hook.h"

enum { ROOM = 4096 };

typedef struct {
    uint32_t number[ROOM];
    uint32_t first, n;
} ring;

typedef struct {
    ring shorter, longer;
} memory;

void *shortest_init(const char *params_json) {
    (void)params_json;
    return calloc(1, sizeof(memory));
}

int shortest(void *state, tcps_queue *call) {
    memory *m = state;
    if (call->what == TCPS_ARRIVES) {
        ring *r = call->bytes < 200 ? &m->shorter : &m->longer;
        if (r->n == ROOM)
            call->drops[call->dropped++] = call->packet;
        else
            r->number[(r->first + r->n++) % ROOM] = call->packet;
        return TCPS_EMIT;
    }
    ring *r = m->shorter.n ? &m->shorter : &m->longer;
    if (r->n == 0)
        return TCPS_NOTHING;
    call->packet = r->number[r->first];
    r->first = (r->first + 1) % ROOM;
    r->n--;
    return TCPS_EMIT;
}

void shortest_free(void *state) {
    free(state);
}
