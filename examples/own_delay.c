/* A delay model in C: every tenth packet arrives 2 ms later.
 *
 *     cc -O2 -shared -fPIC -I../python/tcpsbed/data -o libdelay.so own_delay.c      scenario: jitter = "./libdelay.so:tenth"
 */
#include "tcps_hook.h"

int tenth(void *state, tcps_delay *packet) {
    (void)state;
    packet->delay_ns = packet->packet % 10 == 9 ? 2000000 : 0;
    return TCPS_EMIT;
}
