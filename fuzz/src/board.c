/* The firmware's core as functions of bytes: its reader of frames, a board that gets a line at once, and one whose clock the
 * caller sets. */
#include "board.h"

#include <stdlib.h>

struct written {
    uint8_t *bytes;
    size_t length, room;
    uint64_t now_ns;
};

static void append(struct written *out, const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length && out->length < out->room; i++) {
        out->bytes[out->length++] = bytes[i];
    }
}

static void write_line(void *context, const uint8_t *bytes, size_t length)
{
    append(context, bytes, length);
}

static uint64_t clock_ns(void *context)
{
    return ((struct written *)context)->now_ns;
}

static void drive(void *context, const uint8_t *values, size_t length)
{
    (void)context;
    (void)values;
    (void)length;
}

/* What each stretch up to a zero was: an event, and of a body its length and its bytes. */
size_t firmware_reads(const uint8_t *line, size_t length, uint8_t *bytes, size_t room)
{
    struct written out = {bytes, 0, room, 0};
    struct frame_reader reader = {0};
    for (size_t i = 0; i < length; i++) {
        const uint8_t event = (uint8_t)frame_read(&reader, line[i]);
        if (event != FRAME_NOTHING) {
            append(&out, &event, 1);
        }
        if (event == FRAME_BODY) {
            const uint8_t n = (uint8_t)reader.length;
            append(&out, &n, 1);
            append(&out, reader.bytes, reader.length);
        }
    }
    return out.length;
}

/* What a board writes that is given these bytes, 10 us each. */
size_t firmware_writes(const uint8_t *line, size_t length, uint8_t *bytes, size_t room)
{
    struct written out = {bytes, 0, room, 0};
    struct board board;
    const struct board_port port = {clock_ns, write_line, drive, &out};
    board_init(&board, &port);
    for (size_t i = 0; i < length; i++) {
        out.now_ns += 10000;
        while (board_busy(&board)) {
            out.now_ns = board_due_ns(&board);
            board_poll(&board);
        }
        board_byte(&board, line[i]);
        board_poll(&board);
    }
    return out.length;
}

/* A board at power-on, or NULL; `free` ends it. */
struct firmware {
    struct board board;
    struct written out;
};

struct firmware *firmware_begin(void)
{
    struct firmware *firmware = calloc(1, sizeof *firmware);
    if (firmware != NULL) {
        const struct board_port port = {clock_ns, write_line, drive, &firmware->out};
        board_init(&firmware->board, &port);
    }
    return firmware;
}

void firmware_end(struct firmware *firmware)
{
    free(firmware);
}

/* When it has something to do, or BOARD_NEVER; it takes bytes only if it is not busy. */
uint64_t firmware_due_ns(const struct firmware *firmware)
{
    return board_due_ns(&firmware->board);
}

bool firmware_is_busy(const struct firmware *firmware)
{
    return board_busy(&firmware->board);
}

/* At a time, gives it bytes, or lets it do what is due if there are none; what it writes. */
size_t firmware_acts(struct firmware *firmware, uint64_t now_ns, const uint8_t *line, size_t length, uint8_t *bytes,
                     size_t room)
{
    firmware->out = (struct written){bytes, 0, room, now_ns};
    for (size_t i = 0; i < length; i++) {
        while (board_busy(&firmware->board)) {
            firmware->out.now_ns = board_due_ns(&firmware->board);
            board_poll(&firmware->board);
        }
        board_byte(&firmware->board, line[i]);
    }
    if (length == 0) {
        board_poll(&firmware->board);
    }
    return firmware->out.length;
}
