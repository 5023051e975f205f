// What the bare C programs share: the clock, the order of preparations that a real node makes, percentiles.
#ifndef TCPSBED_BENCH_COMMON_H
#define TCPSBED_BENCH_COMMON_H

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000LL
#define S 1000000000LL

static inline int64_t clock_ns(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return t.tv_sec * S + t.tv_nsec;
}

static inline int64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

// CLOCK_REALTIME minus CLOCK_MONOTONIC, from the narrowest of 20 readings.
static inline int64_t realtime_offset_ns(void) {
    int64_t narrowest = S, offset = 0;
    for (int i = 0; i < 20; i++) {
        int64_t before = now_ns(), real = clock_ns(CLOCK_REALTIME), after = now_ns();
        if (after - before < narrowest) {
            narrowest = after - before;
            offset = real - (before + after) / 2;
        }
    }
    return offset;
}

static inline void die(const char *what) {
    perror(what);
    exit(1);
}

enum waiting { BLOCKING, TIMER, HYBRID };

static inline enum waiting waiting_of(const char *name) {
    if (strcmp(name, "blocking") == 0) return BLOCKING;
    if (strcmp(name, "timer") == 0) return TIMER;
    if (strcmp(name, "hybrid") == 0) return HYBRID;
    fprintf(stderr, "waiting is blocking, timer or hybrid, not %s\n", name);
    exit(2);
}

// Timer slack of 1 ns; SCHED_FIFO and locked memory if asked for. Says which class it got.
static inline const char *prepare(int fifo) {
    prctl(PR_SET_TIMERSLACK, 1UL);
    if (fifo <= 0) return "other";
    struct sched_param priority = {.sched_priority = fifo};
    mlockall(MCL_CURRENT);
    return sched_setscheduler(0, SCHED_FIFO, &priority) == 0 ? "fifo" : "other (fifo refused)";
}

// A UDP socket on a loopback port (0: any), with kernel receive stamps.
static inline int udp_socket(uint16_t port) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1, room = 4 << 20;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0) die("socket");
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    return fd;
}

static inline struct sockaddr_in address_of(int fd) {
    struct sockaddr_in at;
    socklen_t length = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &length) < 0) die("getsockname");
    return at;
}

// Receives without waiting; gives the kernel's stamp on the monotonic clock.
static inline ssize_t receive_stamped(int fd, void *bytes, size_t room, int64_t offset_ns, int64_t *stamp_ns) {
    char control[128];
    struct iovec part = {bytes, room};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT);
    *stamp_ns = now_ns();
    if (got < 0) return got;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec t;
            memcpy(&t, CMSG_DATA(c), sizeof t);
            *stamp_ns = t.tv_sec * S + t.tv_nsec - offset_ns;
        }
    }
    return got;
}

// Waits for input on the sockets until a moment (-1: for ever), in the way asked for.
static inline void wait_until(struct pollfd *fds, int n, enum waiting waiting, int64_t until_ns, int64_t spin_ns) {
    if (until_ns < 0) {
        poll(fds, n, -1);
        return;
    }
    int64_t left = until_ns - now_ns();
    if (waiting == BLOCKING) {
        poll(fds, n, left <= 0 ? 0 : (int)((left + MS - 1) / MS));
        return;
    }
    if (waiting == HYBRID) left -= spin_ns;
    struct timespec t = {left > 0 ? left / S : 0, left > 0 ? left % S : 0};
    if (ppoll(fds, n, &t, NULL) == 0 && waiting == HYBRID) {
        struct timespec none = {0, 0};
        while (now_ns() < until_ns && ppoll(fds, n, &none, NULL) == 0) {
        }
    }
}

static int by_size(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// Prints `"name":{"n":..,"p50":..}` in microseconds and sorts the values.
static inline void print_us(const char *name, int64_t *values, size_t n) {
    qsort(values, n, sizeof *values, by_size);
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += values[i];
#define AT(p) (n ? values[(size_t)((n - 1) * (p) + 0.5)] / 1e3 : 0)
    printf("\"%s\":{\"n\":%zu,\"min\":%.3f,\"mean\":%.3f,\"p50\":%.3f,\"p95\":%.3f,\"p99\":%.3f,\"p999\":%.3f,\"max\":%.3f}",
           name, n, AT(0), n ? sum / n / 1e3 : 0, AT(.5), AT(.95), AT(.99), AT(.999), AT(1));
#undef AT
}

// User and system time of this process (or of its children that have ended), seconds.
static inline double processor_s(int who) {
    struct rusage u;
    getrusage(who, &u);
    return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

#endif
