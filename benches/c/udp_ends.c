// Two bare ends of an emulated path on one machine: each sends on a period to where the other is reached, and each
// measures the one-way delay of what arrives, on the clock that both share.
//
//   udp_ends --a-port 0 --b-port 0 --direct 1                      the floor: no emulator between
//   udp_ends --a-port 7001 --b-port 7002 --a-to 7101 --b-to 7102   a sends to port 7101, b to port 7102
//
// Delay is counted from the moment before sendto to the kernel's receive stamp (kernel_us) and to the moment at which
// the end has the datagram (user_us). One process, one thread, ends half a period apart. One line of JSON comes out.

#include "common.h"

struct options {
    int64_t period_ns, spin_ns;
    double seconds;
    int bytes, fifo, port[2], to[2];
    enum waiting waiting;
    bool direct;
};

struct head {
    uint64_t index;
    int64_t sent_ns;
};

struct end {
    int fd;
    struct sockaddr_in to;
    int64_t *kernel_ns, *user_ns, next_ns;
    size_t sent, got, room;
    uint64_t reordered, next_index;
};

static struct options parse(int argc, char **argv) {
    struct options o = {.period_ns = MS, .spin_ns = 100000, .seconds = 1, .bytes = 100, .waiting = HYBRID};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *key = argv[i], *value = argv[i + 1];
        if (strcmp(key, "--rate") == 0) o.period_ns = (int64_t)(S / atof(value));
        else if (strcmp(key, "--seconds") == 0) o.seconds = atof(value);
        else if (strcmp(key, "--bytes") == 0) o.bytes = atoi(value);
        else if (strcmp(key, "--fifo") == 0) o.fifo = atoi(value);
        else if (strcmp(key, "--spin-us") == 0) o.spin_ns = (int64_t)(atof(value) * 1e3);
        else if (strcmp(key, "--waiting") == 0) o.waiting = waiting_of(value);
        else if (strcmp(key, "--a-port") == 0) o.port[0] = atoi(value);
        else if (strcmp(key, "--b-port") == 0) o.port[1] = atoi(value);
        else if (strcmp(key, "--a-to") == 0) o.to[0] = atoi(value);
        else if (strcmp(key, "--b-to") == 0) o.to[1] = atoi(value);
        else if (strcmp(key, "--direct") == 0) o.direct = atoi(value);
        else {
            fprintf(stderr, "unknown option %s\n", key);
            exit(2);
        }
    }
    if (o.bytes < (int)sizeof(struct head)) o.bytes = sizeof(struct head);
    return o;
}

static void collect(struct end *e, int64_t offset_ns) {
    char bytes[2048];
    int64_t stamp_ns;
    ssize_t got;
    while ((got = receive_stamped(e->fd, bytes, sizeof bytes, offset_ns, &stamp_ns)) >= (ssize_t)sizeof(struct head)) {
        struct head head;
        memcpy(&head, bytes, sizeof head);
        if (e->got == e->room) continue;
        e->kernel_ns[e->got] = stamp_ns - head.sent_ns;
        e->user_ns[e->got++] = now_ns() - head.sent_ns;
        if (head.index < e->next_index) e->reordered++;
        else e->next_index = head.index + 1;
    }
}

static void send_one(struct end *e, const struct options *o) {
    static char bytes[2048];
    struct head head = {e->sent++, now_ns()};
    memcpy(bytes, &head, sizeof head);
    sendto(e->fd, bytes, o->bytes, 0, (struct sockaddr *)&e->to, sizeof e->to);
    e->next_ns += o->period_ns;
}

static void run(struct end ends[2], const struct options *o) {
    int64_t offset_ns = realtime_offset_ns(), begin = now_ns() + 50 * MS;
    int64_t stop = begin + (int64_t)(o->seconds * S), last = stop + 500 * MS;
    struct pollfd in[2] = {{.fd = ends[0].fd, .events = POLLIN}, {.fd = ends[1].fd, .events = POLLIN}};
    ends[0].next_ns = begin;
    ends[1].next_ns = begin + o->period_ns / 2;
    for (int64_t t = now_ns(); t < last; t = now_ns()) {
        int64_t due = last;
        for (int i = 0; i < 2; i++) {
            if (ends[i].next_ns < stop && ends[i].next_ns <= t) send_one(&ends[i], o);
            if (ends[i].next_ns < stop && ends[i].next_ns < due) due = ends[i].next_ns;
        }
        wait_until(in, 2, o->waiting, due, o->spin_ns);
        collect(&ends[0], offset_ns);
        collect(&ends[1], offset_ns);
    }
}

static void print_end(const char *name, struct end *e, size_t sent) {
    printf("\"%s\":{\"sent\":%zu,\"lost\":%zu,\"reordered\":%lu,", name, sent, sent - e->got, (unsigned long)e->reordered);
    print_us("kernel_us", e->kernel_ns, e->got);
    printf(",");
    print_us("user_us", e->user_ns, e->got);
    printf("}");
}

int main(int argc, char **argv) {
    struct options o = parse(argc, argv);
    struct end ends[2] = {0};
    for (int i = 0; i < 2; i++) {
        ends[i].fd = udp_socket(o.port[i]);
        ends[i].room = (size_t)(o.seconds * S / o.period_ns) + 16;
        ends[i].kernel_ns = calloc(ends[i].room, 8);
        ends[i].user_ns = calloc(ends[i].room, 8);
    }
    for (int i = 0; i < 2; i++) {
        ends[i].to = address_of(ends[1 - i].fd);
        if (!o.direct) ends[i].to.sin_port = htons(o.to[i]);
    }
    const char *policy = prepare(o.fifo);
    run(ends, &o);
    printf("{\"policy\":\"%s\",\"bytes\":%d,", policy, o.bytes);
    print_end("a_to_b", &ends[1], ends[0].sent);
    printf(",");
    print_end("b_to_a", &ends[0], ends[1].sent);
    printf("}\n");
    return 0;
}
