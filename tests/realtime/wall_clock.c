/* Puts the wall clock of a process forward or back, as an administrator or NTP may while it runs.
 *
 *     LD_PRELOAD=wall_clock.so WALL_CLOCK_STEP="-3 0.8" PROGRAM      by -3 s, 0.8 s after the process got its first datagram
 *
 * CLOCK_REALTIME and the kernel's receive stamps (SCM_TIMESTAMPNS) move together; CLOCK_MONOTONIC goes on.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

static int (*clock_of)(clockid_t, struct timespec *);
static ssize_t (*receive)(int, struct msghdr *, int);
static double step_s, after_s, begun_s = -1;

static double monotonic_s(void) {
    struct timespec now;
    clock_of(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

__attribute__((constructor)) static void begin(void) {
    const char *asked = getenv("WALL_CLOCK_STEP");
    clock_of = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    receive = (ssize_t(*)(int, struct msghdr *, int))dlsym(RTLD_NEXT, "recvmsg");
    if (asked == NULL || sscanf(asked, "%lf %lf", &step_s, &after_s) != 2)
        step_s = 0;
}

static void put(struct timespec *wall) {
    if (begun_s >= 0 && monotonic_s() - begun_s > after_s)
        wall->tv_sec += (time_t)step_s;
}

int clock_gettime(clockid_t id, struct timespec *now) {
    if (clock_of == NULL)
        clock_of = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = clock_of(id, now);
    if (result == 0 && id == CLOCK_REALTIME)
        put(now);
    return result;
}

ssize_t recvmsg(int socket, struct msghdr *message, int flags) {
    ssize_t length = receive(socket, message, flags);
    if (length < 0)
        return length;
    if (begun_s < 0)
        begun_s = monotonic_s();
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec stamp;
            memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
            put(&stamp);
            memcpy(CMSG_DATA(c), &stamp, sizeof stamp);
        }
    }
    return length;
}
