/* The firmware's core as two functions of bytes. */
#include "board.h"

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
