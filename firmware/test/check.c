/* Tests of the portable core, without a framework: the first that fails says where and ends with 1.
 *
 *   check vectors.txt      bodies and their frames, which the Rust side is tested with as well
 */
#include "../core/board.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #what);                                   \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* A board whose clock the test sets, and what it has written and driven. */
static uint64_t now;
static uint8_t written[1 << 16];
static size_t written_length;
static uint8_t driven[BOARD_PAYLOAD_MAX];
static size_t driven_length, drives;
static uint16_t sequence;

static uint64_t clock_ns(void *context)
{
    (void)context;
    return now;
}

static void keep(void *context, const uint8_t *bytes, size_t length)
{
    (void)context;
    CHECK(written_length + length <= sizeof written);
    memcpy(written + written_length, bytes, length);
    written_length += length;
}

static void keep_drive(void *context, const uint8_t *values, size_t length)
{
    (void)context;
    memcpy(driven, values, length);
    driven_length = length;
    drives++;
}

static struct board fresh(void)
{
    static const struct board_port port = {clock_ns, keep, keep_drive, NULL};
    struct board board;
    now = written_length = driven_length = drives = sequence = 0;
    board_init(&board, &port);
    return board;
}

static void feed(struct board *board, const uint8_t *line, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        board_byte(board, line[i]);
    }
}

static void tell(struct board *board, uint8_t *body, size_t length)
{
    uint8_t line[FRAME_LINE_MAX];
    body[1] = (uint8_t)(sequence >> 8);
    body[2] = (uint8_t)sequence++;
    feed(board, line, frame_write(body, length, line));
}

/* Channels 0 relay, 1 capture, 2 drive, 3 sense; watchdog 20 ms; safe output 1.0. */
static void hello(struct board *board, uint8_t safe, uint32_t work_us)
{
    uint8_t body[] = {BOARD_HELLO, 0, 0, BOARD_VERSION, safe, 0, 20,
                      (uint8_t)(work_us >> 24), (uint8_t)(work_us >> 16), (uint8_t)(work_us >> 8), (uint8_t)work_us,
                      4, BOARD_RELAY, BOARD_CAPTURE, BOARD_DRIVE, BOARD_SENSE, 0x3f, 0x80, 0, 0};
    tell(board, body, sizeof body);
}

static void sample(struct board *board, uint8_t channel, const uint8_t *payload, size_t length)
{
    uint8_t body[4 + BOARD_PAYLOAD_MAX] = {BOARD_SAMPLE, 0, 0, channel};
    memcpy(body + 4, payload, length);
    tell(board, body, 4 + length);
}

/* The next frame that the board has written since `written_length` was 0; its length, 0 if there is none. */
static size_t heard(size_t *at, uint8_t *body)
{
    struct frame_reader reader = {0};
    while (*at < written_length) {
        if (frame_read(&reader, written[(*at)++]) == FRAME_BODY) {
            memcpy(body, reader.bytes, reader.length);
            return reader.length;
        }
    }
    return 0;
}

static uint32_t get32(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static size_t unhex(const char *text, uint8_t *bytes)
{
    size_t n = 0;
    unsigned byte;
    for (; *text != 0; text++) {
        if (*text != ' ') {
            CHECK(sscanf(text, "%2x", &byte) == 1);
            bytes[n++] = (uint8_t)byte;
            text++;
        }
    }
    return n;
}

static void vectors(const char *path)
{
    FILE *file = fopen(path, "r");
    char row[2048];
    size_t rows = 0;
    CHECK(file != NULL);
    while (fgets(row, sizeof row, file) != NULL) {
        uint8_t body[FRAME_LINE_MAX], line[FRAME_LINE_MAX], made[FRAME_LINE_MAX];
        struct frame_reader reader = {0};
        enum frame_event last = FRAME_NOTHING;
        row[strcspn(row, "\n")] = 0;
        if (row[0] == '#' || strtok(row, "|") == NULL) {
            continue;
        }
        const char *second = strtok(NULL, "|"), *third = strtok(NULL, "|");
        CHECK(second != NULL && third != NULL);
        const size_t body_length = unhex(second, body), line_length = unhex(third, line);
        CHECK(frame_write(body, body_length, made) == line_length && memcmp(made, line, line_length) == 0);
        for (size_t i = 0; i < line_length; i++) {
            CHECK(last == FRAME_NOTHING);
            last = frame_read(&reader, line[i]);
        }
        CHECK(last == FRAME_BODY && reader.length == body_length && memcmp(reader.bytes, body, body_length) == 0);
        rows++;
    }
    fclose(file);
    CHECK(rows >= 8);
}

static void crc_is_that_of_its_catalogue_entry(void)
{
    CHECK(frame_crc((const uint8_t *)"123456789", 9) == 0x29b1);
}

static void every_body_survives_its_line(void)
{
    uint8_t body[FRAME_BODY_MAX], line[FRAME_LINE_MAX];
    struct frame_reader reader = {0};
    srand(1);
    for (size_t round = 0; round < 20000; round++) {
        const size_t length = FRAME_BODY_MIN + (size_t)rand() % (FRAME_BODY_MAX - FRAME_BODY_MIN + 1);
        for (size_t i = 0; i < length; i++) {
            body[i] = (uint8_t)(rand() % 3 == 0 ? 0 : rand());
        }
        const size_t n = frame_write(body, length, line);
        CHECK(n == length + FRAME_OVERHEAD);
        for (size_t i = 0; i < n; i++) {
            const enum frame_event event = frame_read(&reader, line[i]);
            CHECK((line[i] == 0) == (i == n - 1));
            CHECK(event == (i == n - 1 ? FRAME_BODY : FRAME_NOTHING));
        }
        CHECK(reader.length == length && memcmp(reader.bytes, body, length) == 0);
    }
}

static void samples_come_back_with_entry_and_exit(void)
{
    static const uint8_t values[] = {0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0};
    struct board board = fresh();
    uint8_t body[FRAME_LINE_MAX];
    size_t at = 0;
    hello(&board, BOARD_VALUES, 250);
    CHECK(heard(&at, body) == 10 && body[0] == BOARD_READY && body[3] == BOARD_VERSION);
    now = 7000000;
    sample(&board, 2, values, sizeof values);
    CHECK(board_busy(&board) && board_due_ns(&board) == 7250000 && heard(&at, body) == 0);
    now = 7249999;
    board_poll(&board);
    CHECK(board_busy(&board) && drives == 0);
    now = 7260000;
    board_poll(&board);
    CHECK(!board_busy(&board) && drives == 1 && driven_length == sizeof values);
    CHECK(heard(&at, body) == BOARD_ANSWER_HEAD + sizeof values && body[0] == BOARD_ANSWER && body[3] == 2);
    CHECK(body[4] == 0 && body[5] == 1 && get32(body + 6) == 7000 && get32(body + 10) == 260000);
    CHECK(memcmp(body + BOARD_ANSWER_HEAD, values, sizeof values) == 0);
}

static void the_watchdog_goes_to_the_safe_output_once(void)
{
    static const uint8_t values[] = {0xc0, 0, 0, 0, 0xc0, 0, 0, 0}, safe[] = {0x3f, 0x80, 0, 0, 0, 0, 0, 0};
    struct board board = fresh();
    uint8_t body[FRAME_LINE_MAX];
    size_t at = 0;
    hello(&board, BOARD_VALUES, 0);
    CHECK(board_due_ns(&board) == BOARD_NEVER);
    sample(&board, 2, values, sizeof values);
    sample(&board, 3, values, sizeof values);
    at = written_length;
    now = 19999999;
    board_poll(&board);
    CHECK(board.counts.barked == 0 && written_length == at);
    now = 20000000;
    board_poll(&board);
    board_poll(&board);
    CHECK(board.counts.barked == 1 && drives == 2 && memcmp(driven, safe, sizeof safe) == 0);
    CHECK(heard(&at, body) == 16 && body[0] == BOARD_SAFE && body[3] == 2 && get32(body + 4) == 20000);
    CHECK(memcmp(body + 8, safe, sizeof safe) == 0 && board_due_ns(&board) == BOARD_NEVER);
    sample(&board, 2, values, sizeof values);
    CHECK(board_due_ns(&board) == 40000000 && memcmp(driven, values, sizeof values) == 0);

    board = fresh();
    hello(&board, BOARD_HOLD, 0);
    sample(&board, 2, values, sizeof values);
    now = 30000000;
    board_poll(&board);
    CHECK(board.counts.barked == 1 && drives == 1 && memcmp(driven, values, sizeof values) == 0);
}

static void what_is_no_number_moves_nothing(void)
{
    static const uint8_t good[] = {0x3f, 0x80, 0, 0}, nan[] = {0x7f, 0xc0, 0, 0}, infinite[] = {0xff, 0x80, 0, 0};
    static const uint8_t zero[] = {0, 0, 0, 0};
    static const struct {
        uint8_t channel;
        const uint8_t *given, *stead;
    } cases[] = {{0, nan, nan}, {1, nan, good}, {2, infinite, good}, {3, nan, zero}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct board board = fresh();
        uint8_t body[FRAME_LINE_MAX];
        size_t at = 0;
        hello(&board, BOARD_HOLD, 0);
        sample(&board, cases[i].channel, good, 4);
        sample(&board, cases[i].channel, cases[i].given, 4);
        heard(&at, body);
        heard(&at, body);
        CHECK(heard(&at, body) == BOARD_ANSWER_HEAD + 4);
        CHECK(memcmp(body + BOARD_ANSWER_HEAD, cases[i].stead, 4) == 0);
        CHECK(board.counts.refused == (cases[i].channel != 0));
    }
}

static void damage_is_counted_and_the_next_frame_is_read(void)
{
    static const uint8_t torn[] = {9, 1, 2, 0}, runt[] = {1, 1, 0}, zeros[3] = {0};
    struct board board = fresh();
    uint8_t line[FRAME_LINE_MAX], body[FRAME_LINE_MAX] = {BOARD_QUERY, 1, 1};
    hello(&board, BOARD_HOLD, 0);
    const size_t n = frame_write(body, 3, line);
    line[2] ^= 4;
    feed(&board, line, n);
    feed(&board, torn, sizeof torn);
    feed(&board, runt, sizeof runt);
    for (size_t i = 0; i < 5000; i++) {
        board_byte(&board, 0x55);
    }
    feed(&board, zeros, sizeof zeros);
    sample(&board, 4, zeros, 0); /* there are 4 channels */
    sample(&board, 2, zeros, 3); /* values have 4 bytes */
    body[0] = 0x77;
    tell(&board, body, 3);
    sequence += 5;
    written_length = 0;
    body[0] = BOARD_QUERY;
    tell(&board, body, 3);
    size_t at = 0;
    CHECK(heard(&at, body) == 39 && body[0] == BOARD_COUNTS);
    static const uint32_t counts[] = {5, 1, 2, 1, 3, 5, 0, 0, 0};
    for (size_t i = 0; i < 9; i++) {
        CHECK(get32(body + 3 + 4 * i) == counts[i]);
    }
}

static void a_wrong_hello_changes_nothing(void)
{
    struct board board = fresh();
    uint8_t wrong[][14] = {
        {BOARD_HELLO, 0, 0, BOARD_VERSION + 1, 0, 0, 9, 0, 0, 0, 0, 1, BOARD_DRIVE},
        {BOARD_HELLO, 0, 0, BOARD_VERSION, 2, 0, 9, 0, 0, 0, 0, 1, BOARD_DRIVE},
        {BOARD_HELLO, 0, 0, BOARD_VERSION, 0, 0, 9, 0, 0, 0, 0, 9, BOARD_DRIVE},
        {BOARD_HELLO, 0, 0, BOARD_VERSION, 0, 0, 9, 0, 0, 0, 0, 1, 4},
        {BOARD_HELLO, 0, 0, BOARD_VERSION, 0, 0, 9, 0, 0, 0, 0, 0, 1},
    };
    hello(&board, BOARD_VALUES, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tell(&board, wrong[i], 13);
    }
    uint8_t cut[] = {BOARD_HELLO, 0, 0, BOARD_VERSION};
    tell(&board, cut, sizeof cut);
    CHECK(board.counts.unknown == 6 && board.channels == 4 && board.watchdog_ns == 20000000);
}

static void noise_breaks_nothing(void)
{
    struct board board = fresh();
    hello(&board, BOARD_VALUES, 0);
    srand(2);
    for (size_t i = 0; i < 400000; i++) {
        if (written_length > sizeof written - 1024) {
            written_length = 0;
        }
        now += 1000;
        board_byte(&board, (uint8_t)(rand() % 8 == 0 ? 0 : rand()));
        board_poll(&board);
    }
    CHECK(board.counts.no_crc > 0 && board.counts.no_cobs > 0);
}

int main(int count, char **words)
{
    CHECK(count == 2);
    vectors(words[1]);
    crc_is_that_of_its_catalogue_entry();
    every_body_survives_its_line();
    samples_come_back_with_entry_and_exit();
    the_watchdog_goes_to_the_safe_output_once();
    what_is_no_number_moves_nothing();
    damage_is_counted_and_the_next_frame_is_read();
    a_wrong_hello_changes_nothing();
    noise_breaks_nothing();
    puts("every test holds");
    return 0;
}
