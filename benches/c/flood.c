// A stranger's flood: datagrams of 64 random bytes to one port of loopback, evenly in time, 32 to a call.
//
//     flood PORT DATAGRAMS_A_SECOND SECONDS
//
// Prints one line of JSON: how many went, and in how many seconds.
#include "common.h"

#define BATCH 32
#define BYTES 64

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "flood PORT DATAGRAMS_A_SECOND SECONDS\n");
        return 2;
    }
    double rate = atof(argv[2]), seconds = atof(argv[3]);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0) die("socket");
    static unsigned char bytes[BATCH][BYTES];
    struct mmsghdr messages[BATCH] = {0};
    struct iovec parts[BATCH];
    for (int i = 0; i < BATCH; i++) {
        for (int k = 0; k < BYTES; k++) bytes[i][k] = random();
        parts[i] = (struct iovec){bytes[i], BYTES};
        messages[i].msg_hdr = (struct msghdr){
            .msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &parts[i], .msg_iovlen = 1};
    }
    int64_t begin = now_ns(), end = begin + (int64_t)(seconds * S), now;
    long sent = 0;
    while ((now = now_ns()) < end) {
        if (sent > (now - begin) / 1e9 * rate) {
            struct timespec pause = {0, 50000};
            nanosleep(&pause, NULL);
            continue;
        }
        int went = sendmmsg(fd, messages, BATCH, 0);
        if (went < 0 && errno != ENOBUFS && errno != ECONNREFUSED) die("sendmmsg");
        sent += went > 0 ? went : 0;
    }
    printf("{\"sent\": %ld, \"seconds\": %.3f}\n", sent, (now - begin) / 1e9);
    return 0;
}
