/* The bare loop that lines of tcpsbed are measured against: a frame to a board on a unix socket, its answer back.
 *
 *   line_echo SOCKET ROUNDS PERIOD_US PAYLOAD
 *
 * Listens at SOCKET for the board to join, and prints the percentiles of the round trip in ns as JSON. An answer must be that
 * of the frame before it, with its payload; one that comes after its time is none.
 */
#define _GNU_SOURCE
#include "../../firmware/core/board.h"
#include "../../firmware/core/frame.c"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define SAMPLE_HEAD 4u

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "line_echo: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int join(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (strlen(path) >= sizeof name.sun_path) {
        errno = ENAMETOOLONG;
        die(path);
    }
    strcpy(name.sun_path, path);
    if (listener < 0 || bind(listener, (struct sockaddr *)&name, sizeof name) != 0 || listen(listener, 1) != 0) {
        die(path);
    }
    struct pollfd waiting = {.fd = listener, .events = POLLIN};
    if (poll(&waiting, 1, 20000) <= 0) {
        die("nobody joins");
    }
    return accept(listener, NULL, NULL);
}

/* Whether a body answers another: the board's answer to it, or its own bytes from a board that gives every byte back. */
static int answers(const struct frame_reader *reader, const uint8_t *body, size_t length)
{
    const uint8_t *said = reader->bytes;
    if (reader->length == length && memcmp(said, body, length) == 0) {
        return 1;
    }
    if (body[0] == BOARD_HELLO) {
        return said[0] == BOARD_READY && reader->length == 10 && memcmp(said + 4, body + 1, 2) == 0;
    }
    return said[0] == BOARD_ANSWER && reader->length == BOARD_ANSWER_HEAD + length - SAMPLE_HEAD &&
           memcmp(said + 4, body + 1, 2) == 0 &&
           memcmp(said + BOARD_ANSWER_HEAD, body + SAMPLE_HEAD, length - SAMPLE_HEAD) == 0;
}

/* Sends a body and waits for its answer; false if it does not come within 0.2 s. */
static int exchange(int line, uint8_t *body, size_t length, uint16_t sequence)
{
    uint8_t frame[FRAME_LINE_MAX], bytes[512];
    struct frame_reader reader = {0};
    body[1] = (uint8_t)(sequence >> 8);
    body[2] = (uint8_t)sequence;
    const size_t n = frame_write(body, length, frame);
    if (write(line, frame, n) != (ssize_t)n) {
        die("write");
    }
    const uint64_t limit = now_ns() + 200000000;
    for (uint64_t now = now_ns(); now < limit; now = now_ns()) {
        struct pollfd end = {.fd = line, .events = POLLIN};
        if (poll(&end, 1, (int)((limit - now) / 1000000) + 1) <= 0) {
            return 0;
        }
        const ssize_t have = read(line, bytes, sizeof bytes);
        if (have <= 0) {
            die("read");
        }
        for (ssize_t i = 0; i < have; i++) {
            if (frame_read(&reader, bytes[i]) == FRAME_BODY && answers(&reader, body, length)) {
                return 1;
            }
        }
    }
    return 0;
}

static int ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(int count, char **words)
{
    if (count != 5) {
        fprintf(stderr, "usage: line_echo SOCKET ROUNDS PERIOD_US PAYLOAD\n");
        return 2;
    }
    const size_t rounds = strtoul(words[2], NULL, 10), payload = strtoul(words[4], NULL, 10);
    if (rounds == 0 || payload > BOARD_PAYLOAD_MAX) {
        fprintf(stderr, "line_echo: found %zu rounds of %zu B; allowed: 1 or more, of at most %u B\n", rounds, payload,
                BOARD_PAYLOAD_MAX);
        return 2;
    }
    const int line = join(words[1]);
    const uint64_t period_ns = strtoul(words[3], NULL, 10) * 1000;
    uint64_t *took = calloc(rounds, sizeof *took);
    uint8_t hello[] = {BOARD_HELLO, 0, 0, BOARD_VERSION, 0, 0, 0, 0, 0, 0, 0, 1, BOARD_RELAY};
    uint8_t body[FRAME_BODY_MAX] = {BOARD_SAMPLE};
    for (size_t i = 0; i < payload; i++) {
        body[SAMPLE_HEAD + i] = (uint8_t)(37 * i);
    }
    size_t kept = 0;
    uint16_t sequence = 0;
    for (int tries = 0; !exchange(line, hello, sizeof hello, sequence++); tries++) {
        if (tries == 100) {
            die("no answer");
        }
    }
    const uint64_t begun = now_ns();
    for (size_t i = 0; i < rounds; i++) {
        const uint64_t due = begun + i * period_ns;
        const struct timespec until = {(time_t)(due / 1000000000u), (long)(due % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        const uint64_t sent = now_ns();
        if (exchange(line, body, SAMPLE_HEAD + payload, sequence++)) {
            took[kept++] = now_ns() - sent;
        }
    }
    qsort(took, kept, sizeof *took, ascending);
    if (kept == 0) {
        die("no answers");
    }
    printf("{\"n\": %zu, \"p50_ns\": %llu, \"p99_ns\": %llu}\n", kept, (unsigned long long)took[kept / 2],
           (unsigned long long)took[kept * 99 / 100]);
    return 0;
}
