#include "board.h"

#define HELLO_HEAD 12u
#define SAMPLE_HEAD 4u
#define SAFE_HEAD 8u

static void copy(uint8_t *to, const uint8_t *from, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        to[i] = from[i];
    }
}

static void fill(uint8_t *to, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        to[i] = 0;
    }
}

static uint16_t get16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static uint32_t get32(const uint8_t *bytes)
{
    return (uint32_t)get16(bytes) << 16 | get16(bytes + 2);
}

static void put16(uint8_t *bytes, uint16_t value)
{
    bytes[0] = (uint8_t)(value >> 8);
    bytes[1] = (uint8_t)value;
}

static void put32(uint8_t *bytes, uint32_t value)
{
    put16(bytes, (uint16_t)(value >> 16));
    put16(bytes + 2, (uint16_t)value);
}

/* A float is a number unless all bits of its exponent are set (IEEE 754). */
static bool is_number(const uint8_t *value)
{
    return (value[0] & 0x7f) != 0x7f || (value[1] & 0x80) == 0;
}

static uint64_t now_ns(const struct board *board)
{
    return board->port.now_ns(board->port.context);
}

static uint32_t micros(uint64_t ns)
{
    return (uint32_t)(ns / 1000);
}

/* Numbers a body and sends it. */
static void send(struct board *board, uint8_t *body, size_t length)
{
    uint8_t line[FRAME_LINE_MAX];
    put16(body + 1, board->sequence++);
    board->port.write(board->port.context, line, frame_write(body, length, line));
}

void board_init(struct board *board, const struct board_port *port)
{
    fill((uint8_t *)board, sizeof *board);
    board->port = *port;
    board->barks_ns = BOARD_NEVER;
}

bool board_busy(const struct board *board)
{
    return board->busy;
}

uint64_t board_due_ns(const struct board *board)
{
    const uint64_t until_ns = board->busy ? board->until_ns : BOARD_NEVER;
    return until_ns < board->barks_ns ? until_ns : board->barks_ns;
}

/* A host begins: its channels, the watchdog and the safe output. Outputs stay where they are. */
static bool hello(struct board *board, const uint8_t *body, size_t length)
{
    if (length < HELLO_HEAD || body[3] != BOARD_VERSION || body[4] > BOARD_VALUES) {
        return false;
    }
    const uint8_t channels = body[11];
    const size_t head = HELLO_HEAD + channels;
    if (channels > BOARD_CHANNELS || length < head || (length - head) % 4 != 0 || length - head > BOARD_PAYLOAD_MAX) {
        return false;
    }
    for (size_t i = 0; i < channels; i++) {
        if (body[HELLO_HEAD + i] > BOARD_SENSE) {
            return false;
        }
    }
    copy(board->roles, body + HELLO_HEAD, channels);
    board->channels = channels;
    board->safe = body[4];
    board->watchdog_ns = (uint64_t)get16(body + 5) * 1000000;
    board->work_ns = (uint64_t)get32(body + 7) * 1000;
    board->safe_length = length - head;
    copy(board->safe_values, body + head, board->safe_length);
    board->barks_ns = BOARD_NEVER;
    uint8_t ready[10] = {BOARD_READY, 0, 0, BOARD_VERSION};
    copy(ready + 4, body + 1, 2);
    put32(ready + 6, micros(now_ns(board)));
    send(board, ready, sizeof ready);
    return true;
}

/* Values that are no numbers are replaced by those of `stead`, or by 0 without one; each is counted. */
static void mend(struct board *board, uint8_t *values, size_t length, const uint8_t *stead)
{
    for (size_t i = 0; i + 4 <= length; i += 4) {
        if (is_number(values + i)) {
            continue;
        }
        board->counts.refused++;
        if (stead != NULL) {
            copy(values + i, stead + i, 4);
        } else {
            fill(values + i, 4);
        }
    }
}

static void drive(struct board *board, uint8_t *values, size_t length)
{
    mend(board, values, length, board->outputs);
    copy(board->outputs, values, length);
    board->outputs_length = length;
    board->barks_ns = board->watchdog_ns > 0 ? now_ns(board) + board->watchdog_ns : BOARD_NEVER;
    board->port.drive(board->port.context, board->outputs, length);
}

/* The answer begins to leave. */
static void finish(struct board *board)
{
    const uint8_t channel = board->answer[3];
    uint8_t *payload = board->answer + BOARD_ANSWER_HEAD;
    switch (board->roles[channel]) {
    case BOARD_CAPTURE:
        mend(board, payload, board->payload, board->last[channel]);
        copy(board->last[channel], payload, board->payload);
        break;
    case BOARD_DRIVE:
        drive(board, payload, board->payload);
        break;
    case BOARD_SENSE:
        mend(board, payload, board->payload, NULL);
        break;
    default:
        break;
    }
    const uint64_t work_ns = now_ns(board) - board->entry_ns;
    put32(board->answer + 6, micros(board->entry_ns));
    put32(board->answer + 10, work_ns < UINT32_MAX ? (uint32_t)work_ns : UINT32_MAX);
    board->busy = false;
    send(board, board->answer, BOARD_ANSWER_HEAD + board->payload);
}

static bool sample(struct board *board, const uint8_t *body, size_t length)
{
    if (length < SAMPLE_HEAD || length - SAMPLE_HEAD > BOARD_PAYLOAD_MAX || body[3] >= board->channels) {
        return false;
    }
    if (board->roles[body[3]] != BOARD_RELAY && (length - SAMPLE_HEAD) % 4 != 0) {
        return false;
    }
    board->entry_ns = now_ns(board);
    board->answer[0] = BOARD_ANSWER;
    board->answer[3] = body[3];
    copy(board->answer + 4, body + 1, 2);
    board->payload = length - SAMPLE_HEAD;
    copy(board->answer + BOARD_ANSWER_HEAD, body + SAMPLE_HEAD, board->payload);
    board->busy = true;
    board->until_ns = board->entry_ns + board->work_ns;
    if (board->work_ns == 0) {
        finish(board);
    }
    return true;
}

static bool query(struct board *board, size_t length)
{
    const uint32_t counts[] = {
        board->counts.frames,  board->counts.no_crc,  board->counts.no_cobs, board->counts.too_long,  board->counts.unknown,
        board->counts.missing, board->counts.refused, board->counts.barked,  board->counts.overflown,
    };
    uint8_t body[3 + sizeof counts] = {BOARD_COUNTS};
    if (length != 3) {
        return false;
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        put32(body + 3 + 4 * i, counts[i]);
    }
    send(board, body, sizeof body);
    return true;
}

/* A number that is ahead tells how many frames never came; any other begins anew. */
static void number(struct board *board, uint16_t sequence)
{
    const uint16_t ahead = (uint16_t)(sequence - board->expected);
    if (board->numbered && ahead < 0x8000) {
        board->counts.missing += ahead;
    }
    board->numbered = true;
    board->expected = (uint16_t)(sequence + 1);
}

static void body(struct board *board, const uint8_t *bytes, size_t length)
{
    bool known = false;
    board->counts.frames++;
    number(board, get16(bytes + 1));
    switch (bytes[0]) {
    case BOARD_HELLO:
        known = hello(board, bytes, length);
        break;
    case BOARD_SAMPLE:
        known = sample(board, bytes, length);
        break;
    case BOARD_QUERY:
        known = query(board, length);
        break;
    default:
        break;
    }
    board->counts.unknown += !known;
}

void board_byte(struct board *board, uint8_t byte)
{
    switch (frame_read(&board->reader, byte)) {
    case FRAME_BODY:
        body(board, board->reader.bytes, board->reader.length);
        break;
    case FRAME_NO_CRC:
        board->counts.no_crc++;
        break;
    case FRAME_NO_COBS:
        board->counts.no_cobs++;
        break;
    case FRAME_SHORT:
        board->counts.no_cobs++;
        break;
    case FRAME_TOO_LONG:
        board->counts.too_long++;
        break;
    case FRAME_NOTHING:
        break;
    }
}

/* The line has been silent for too long: the actuators go to the safe output, and stay there until the next drive. */
static void bark(struct board *board)
{
    uint8_t safe[SAFE_HEAD + BOARD_PAYLOAD_MAX] = {BOARD_SAFE};
    board->counts.barked++;
    board->barks_ns = BOARD_NEVER;
    if (board->safe == BOARD_VALUES) {
        fill(board->outputs, sizeof board->outputs);
        copy(board->outputs, board->safe_values, board->safe_length);
        board->port.drive(board->port.context, board->outputs, board->outputs_length);
    }
    for (size_t i = 0; i < board->channels; i++) {
        if (board->roles[i] == BOARD_DRIVE) {
            safe[3] = (uint8_t)i;
            break;
        }
    }
    put32(safe + 4, micros(now_ns(board)));
    copy(safe + SAFE_HEAD, board->outputs, board->outputs_length);
    send(board, safe, SAFE_HEAD + board->outputs_length);
}

void board_poll(struct board *board)
{
    const uint64_t now = now_ns(board);
    if (board->busy && now >= board->until_ns) {
        finish(board);
    }
    if (now >= board->barks_ns) {
        bark(board);
    }
}
