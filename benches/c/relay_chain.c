// The least that a chain ms-com -> srv -> ss-com and back can cost on this machine: bare sockets, one process a node.
//
//   client (ms-com) --> relay (srv) --> turn (ss-com)        --return through: turn -> relay -> client, 4 hops
//        ^                                    |               --return direct:  turn -> client, 3 hops
//        +------------------------------------+
//
// The client sends on a period; each datagram carries its number and the moment of sending. Round trips are counted
// to the kernel's receive stamp and to the moment at which the client has the datagram. One line of JSON comes out.

#include "common.h"

struct options {
    int64_t period_ns, spin_ns;
    double seconds;
    int bytes, fifo;
    enum waiting waiting;
    bool through;
};

struct head {
    uint64_t index;
    int64_t sent_ns;
};

static struct options parse(int argc, char **argv) {
    struct options o = {.period_ns = MS, .spin_ns = 50000, .seconds = 1, .bytes = 64, .waiting = TIMER, .through = true};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *key = argv[i], *value = argv[i + 1];
        if (strcmp(key, "--rate") == 0) o.period_ns = (int64_t)(S / atof(value));
        else if (strcmp(key, "--seconds") == 0) o.seconds = atof(value);
        else if (strcmp(key, "--bytes") == 0) o.bytes = atoi(value);
        else if (strcmp(key, "--fifo") == 0) o.fifo = atoi(value);
        else if (strcmp(key, "--spin-us") == 0) o.spin_ns = (int64_t)(atof(value) * 1e3);
        else if (strcmp(key, "--waiting") == 0) o.waiting = waiting_of(value);
        else if (strcmp(key, "--return") == 0) o.through = strcmp(value, "through") == 0;
        else {
            fprintf(stderr, "unknown option %s\n", key);
            exit(2);
        }
    }
    if (o.bytes < (int)sizeof(struct head)) o.bytes = sizeof(struct head);
    return o;
}

// Takes one datagram as the way of waiting wants it.
static ssize_t take(int fd, char *bytes, size_t room, const struct options *o) {
    if (o->waiting == BLOCKING) return recvfrom(fd, bytes, room, 0, NULL, NULL);
    struct pollfd in = {.fd = fd, .events = POLLIN};
    wait_until(&in, 1, o->waiting, -1, 0);
    return recvfrom(fd, bytes, room, MSG_DONTWAIT, NULL, NULL);
}

// A process that hands datagrams from one socket to an address, until it is ended.
static pid_t relay(int in, int out, struct sockaddr_in to, const struct options *o) {
    pid_t pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prepare(o->fifo);
    char bytes[2048];
    for (;;) {
        ssize_t got = take(in, bytes, sizeof bytes, o);
        if (got > 0) sendto(out, bytes, got, 0, (struct sockaddr *)&to, sizeof to);
    }
}

// The relay at srv serves both directions in one loop, as a node does.
static pid_t relay_both(int there, int back, struct sockaddr_in turn, struct sockaddr_in client, const struct options *o) {
    pid_t pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prepare(o->fifo);
    char bytes[2048];
    struct pollfd in[2] = {{.fd = there, .events = POLLIN}, {.fd = back, .events = POLLIN}};
    for (;;) {
        wait_until(in, 2, o->waiting, -1, 0);
        ssize_t got;
        while ((got = recvfrom(there, bytes, sizeof bytes, MSG_DONTWAIT, NULL, NULL)) > 0)
            sendto(back, bytes, got, 0, (struct sockaddr *)&turn, sizeof turn);
        while ((got = recvfrom(back, bytes, sizeof bytes, MSG_DONTWAIT, NULL, NULL)) > 0)
            sendto(there, bytes, got, 0, (struct sockaddr *)&client, sizeof client);
    }
}

struct trips {
    int64_t *kernel_ns, *user_ns, *late_ns;
    size_t sent, back;
};

static void collect(int fd, int64_t offset_ns, struct trips *t) {
    char bytes[2048];
    int64_t stamp_ns;
    ssize_t got;
    while ((got = receive_stamped(fd, bytes, sizeof bytes, offset_ns, &stamp_ns)) >= (ssize_t)sizeof(struct head)) {
        struct head head;
        memcpy(&head, bytes, sizeof head);
        t->kernel_ns[t->back] = stamp_ns - head.sent_ns;
        t->user_ns[t->back++] = now_ns() - head.sent_ns;
    }
}

static void client(int fd, struct sockaddr_in to, const struct options *o, struct trips *t) {
    size_t samples = (size_t)(o->seconds * S / o->period_ns);
    t->kernel_ns = calloc(samples, 8);
    t->user_ns = calloc(samples, 8);
    t->late_ns = calloc(samples, 8);
    char bytes[2048] = {0};
    int64_t offset_ns = realtime_offset_ns(), begin = now_ns() + 50 * MS;
    struct pollfd in = {.fd = fd, .events = POLLIN};
    for (;;) {
        int64_t due = begin + (int64_t)t->sent * o->period_ns;
        if (t->sent == samples) due = begin + (int64_t)samples * o->period_ns + 100 * MS;
        while (now_ns() < due) {
            wait_until(&in, 1, o->waiting, due, o->spin_ns);
            collect(fd, offset_ns, t);
        }
        if (t->sent == samples) return;
        struct head head = {t->sent, now_ns()};
        t->late_ns[t->sent++] = head.sent_ns - due;
        memcpy(bytes, &head, sizeof head);
        sendto(fd, bytes, o->bytes, 0, (struct sockaddr *)&to, sizeof to);
    }
}

int main(int argc, char **argv) {
    struct options o = parse(argc, argv);
    int home = udp_socket(0), there = udp_socket(0), back = udp_socket(0), turn = udp_socket(0);
    struct sockaddr_in at_home = address_of(home), at_there = address_of(there), at_back = address_of(back);
    pid_t children[2];
    children[0] = o.through ? relay_both(there, back, address_of(turn), at_home, &o) : relay(there, back, address_of(turn), &o);
    children[1] = relay(turn, turn, o.through ? at_back : at_home, &o);
    const char *policy = prepare(o.fifo);
    struct trips t = {0};
    client(home, at_there, &o, &t);
    for (int i = 0; i < 2; i++) {
        kill(children[i], SIGTERM);
        waitpid(children[i], NULL, 0);
    }
    printf("{\"processes\":3,\"hops\":%d,\"policy\":\"%s\",\"bytes\":%d,\"sent\":%zu,\"lost\":%zu,\"relays_processor_s\":%.3f,",
           o.through ? 4 : 3, policy, o.bytes, t.sent, t.sent - t.back, processor_s(RUSAGE_CHILDREN));
    print_us("kernel_us", t.kernel_ns, t.back);
    printf(",");
    print_us("user_us", t.user_ns, t.back);
    printf(",");
    print_us("late_us", t.late_ns, t.sent);
    printf("}\n");
    return 0;
}
