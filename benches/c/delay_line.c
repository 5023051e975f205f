// The least that a delay line between two ends can do on this machine: what comes to one of two sockets leaves from the
// other a fixed time after its kernel stamp, with a sleep and a spin of 50 us, as nobody in particular.
//
//   end A --> in 0 ... 10 ms ... out 1 --> end B, and back the other way
//
// It says its two ports in a line, and runs until it is ended.

#include "common.h"

#define ROOM 4096
#define SPIN_NS 50000

struct letter {
    int64_t due_ns;
    int out;
    ssize_t length;
    char bytes[256];
};

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: delay_line DELAY_MS A_PORT B_PORT\n");
        return 2;
    }
    static struct letter letters[ROOM];
    size_t first = 0, next = 0;
    int64_t delay_ns = (int64_t)(atof(argv[1]) * MS), offset_ns = realtime_offset_ns();
    struct sockaddr_in ends[2];
    struct pollfd in[2];
    for (int side = 0; side < 2; side++) {
        in[side] = (struct pollfd){.fd = udp_socket(0), .events = POLLIN};
        ends[side] = (struct sockaddr_in){
            .sin_family = AF_INET, .sin_port = htons(atoi(argv[2 + side])), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    }
    prepare(0);
    printf("%d %d\n", ntohs(address_of(in[0].fd).sin_port), ntohs(address_of(in[1].fd).sin_port));
    fflush(stdout);
    for (;;) {
        wait_until(in, 2, HYBRID, first == next ? -1 : letters[first % ROOM].due_ns, SPIN_NS);
        for (int side = 0; side < 2; side++) {
            while (next - first < ROOM) {
                struct letter *l = &letters[next % ROOM];
                int64_t stamp_ns;
                l->length = receive_stamped(in[side].fd, l->bytes, sizeof l->bytes, offset_ns, &stamp_ns);
                if (l->length < 0) break;
                if (l->length == sizeof l->bytes) die("a datagram of 256 B or more");
                l->due_ns = stamp_ns + delay_ns;
                l->out = 1 - side;
                next++;
            }
        }
        for (; first < next && letters[first % ROOM].due_ns <= now_ns(); first++) {
            struct letter *l = &letters[first % ROOM];
            if (sendto(in[l->out].fd, l->bytes, l->length, 0, (struct sockaddr *)&ends[l->out], sizeof ends[l->out]) < 0)
                die("sendto");
        }
    }
}
