/* A loss model in C: every hundredth packet is lost.
 *
 *     cc -O2 -shared -fPIC -I../python/tcpsbed/data -o libloss.so own_loss.c      scenario: loss = "./libloss.so:hundredth"
 */
#include "tcps_hook.h"

int hundredth(void *state, const tcps_loss *start) {
    (void)state;
    return start->packet % 100 == 99 ? TCPS_NOTHING : TCPS_EMIT;
}
