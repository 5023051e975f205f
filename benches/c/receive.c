/* Processor time of a datagram of 80 B on loopback, with stamp, drops and code point as the session loop asks for them, by the
 * number that wait when the loop wakes up: one recvmsg each, recvmsg until nothing is there, one recvmmsg for all.
 *
 *     cc -O2 -o receive benches/c/receive.c && ./receive
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

enum { MOST = 32, DATAGRAMS = 4000, REPEATS = 5, LARGEST = 65536, CONTROL = 128 };
enum way { EACH, UNTIL_EMPTY, BATCH, WAYS };
static const char *const NAMES[] = {"recvmsg, one each", "recvmsg until empty", "recvmmsg"};

static char data[MOST][LARGEST], control[MOST][CONTROL];
static struct sockaddr_storage senders[MOST];
static struct iovec parts[MOST];

static double cpu_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static struct msghdr message(int i) {
    parts[i] = (struct iovec){data[i], LARGEST};
    return (struct msghdr){&senders[i], sizeof senders[i], &parts[i], 1, control[i], CONTROL, 0};
}

static int take(int fd, enum way way, int waiting) {
    if (way == BATCH) {
        struct mmsghdr all[MOST];
        for (int i = 0; i < MOST; i++) all[i] = (struct mmsghdr){message(i), 0};
        return recvmmsg(fd, all, MOST, MSG_DONTWAIT, NULL);
    }
    int got = 0;
    for (int i = 0; i < waiting + (way == UNTIL_EMPTY); i++) {
        struct msghdr one = message(0);
        got += recvmsg(fd, &one, MSG_DONTWAIT) >= 0;
    }
    return got;
}

static int by_size(const void *a, const void *b) {
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

int main(void) {
    int from = socket(AF_INET, SOCK_DGRAM, 0), to = socket(AF_INET, SOCK_DGRAM, 0), one = 1, room = 4 << 20;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (bind(to, (void *)&address, size) || getsockname(to, (void *)&address, &size) || connect(from, (void *)&address, size))
        return perror("loopback"), 1;
    setsockopt(to, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
    setsockopt(to, SOL_SOCKET, SO_RXQ_OVFL, &one, sizeof one);
    setsockopt(to, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    setsockopt(to, IPPROTO_IP, IP_RECVTOS, &one, sizeof one);
    for (int waiting = 1; waiting <= MOST; waiting *= 2) {
        for (enum way way = EACH; way < WAYS; way++) {
            double us[REPEATS];
            for (int r = 0; r < REPEATS; r++) {
                double sum = 0;
                int got = 0;
                for (int n = 0; n < DATAGRAMS / waiting; n++) {
                    for (int i = 0; i < waiting; i++) send(from, data[0], 80, 0);
                    double begun = cpu_us();
                    int now = take(to, way, waiting);
                    sum += cpu_us() - begun;
                    got += now > 0 ? now : 0;
                }
                us[r] = got ? sum / got : 0;
            }
            qsort(us, REPEATS, sizeof *us, by_size);
            printf("%2d wait, %-19s %.2f us (%.2f-%.2f)\n", waiting, NAMES[way], us[REPEATS / 2], us[0], us[REPEATS - 1]);
        }
    }
}
