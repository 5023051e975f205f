/* The board: what its firmware does with frames, without a line, a clock or a memory allocation of its own.
 *
 *   line ──► board_byte ──► frame ─┬─ SAMPLE ─ entry ─► capture | drive | sense | relay ─ exit ─► ANSWER
 *                                  ├─ HELLO  ──► channels, watchdog, safe output ──► READY
 *                                  └─ QUERY  ──► COUNTS
 *   board_poll ──► work that is over, and the watchdog: no drive for too long ──► safe output ──► SAFE
 *
 * A sample enters when its frame is complete and the board is free for it, and exits when its answer begins to leave.
 * Both moments travel in the answer: they are the echo points of the board.
 *
 * Bodies of frames; numbers are in network order, values are 4-byte floats in network order:
 *
 *   to the board     HELLO   01 sequence:16 version:8 safe:8 watchdog_ms:16 work_us:32 channels:8 role:8 ... value ...
 *                    SAMPLE  02 sequence:16 channel:8 payload ...
 *                    QUERY   03 sequence:16
 *   from the board   READY   81 sequence:16 version:8 of:16 at_us:32
 *                    ANSWER  82 sequence:16 channel:8 of:16 entry_us:32 work_ns:32 payload ...
 *                    SAFE    83 sequence:16 channel:8 at_us:32 value ...
 *                    COUNTS  84 sequence:16 count:32 ... (as in struct board_counts)
 *
 * `sequence` numbers the frames of each side, `of` is that of the frame which is answered.
 */
#ifndef BOARD_H
#define BOARD_H

#include "frame.h"

#define BOARD_VERSION 1
#define BOARD_CHANNELS 8u
/* Bytes of an answer before its payload, and of the longest payload. */
#define BOARD_ANSWER_HEAD 14u
#define BOARD_PAYLOAD_MAX 236u
#define BOARD_NEVER UINT64_MAX

enum board_kind {
    BOARD_HELLO = 0x01,
    BOARD_SAMPLE = 0x02,
    BOARD_QUERY = 0x03,
    BOARD_READY = 0x81,
    BOARD_ANSWER = 0x82,
    BOARD_SAFE = 0x83,
    BOARD_COUNTS = 0x84,
};

/* What the board does with the samples of a channel. */
enum board_role {
    BOARD_RELAY,   /* bytes as they are */
    BOARD_CAPTURE, /* a reading of the hand: one that is no number is replaced by the last that was */
    BOARD_DRIVE,   /* set points of actuators: one that is no number changes nothing; the watchdog waits for these */
    BOARD_SENSE,   /* a reading of forces: one that is no number is taken for none */
};

/* What the actuators do when the watchdog barks. */
enum board_safe {
    BOARD_HOLD,   /* stay */
    BOARD_VALUES, /* go to given values; those that are not given are 0 */
};

/* What has happened since power-on, in the order of a COUNTS frame. */
struct board_counts {
    uint32_t frames;    /* good frames */
    uint32_t no_crc;    /* damaged frames */
    uint32_t no_cobs;   /* torn frames */
    uint32_t too_long;  /* stretches of bytes without a zero that no frame has */
    uint32_t unknown;   /* frames with a kind, channel or length that there is not */
    uint32_t missing;   /* frames that were numbered and never came */
    uint32_t refused;   /* values that are no numbers */
    uint32_t barked;    /* times that the watchdog went to the safe output */
    uint32_t overflown; /* bytes for which a port had no room */
};

/* What a board stands on. */
struct board_port {
    uint64_t (*now_ns)(void *context);
    void (*write)(void *context, const uint8_t *bytes, size_t length);
    /* The outputs of the actuators have changed: values in network order. */
    void (*drive)(void *context, const uint8_t *values, size_t length);
    void *context;
};

struct board {
    struct board_port port;
    struct frame_reader reader;
    struct board_counts counts;
    uint16_t sequence;
    uint16_t expected;
    bool numbered;
    uint8_t roles[BOARD_CHANNELS];
    uint8_t channels;
    uint8_t safe;
    uint64_t watchdog_ns;
    uint64_t work_ns;
    uint8_t safe_values[BOARD_PAYLOAD_MAX];
    size_t safe_length;
    uint8_t outputs[BOARD_PAYLOAD_MAX];
    size_t outputs_length;
    uint8_t last[BOARD_CHANNELS][BOARD_PAYLOAD_MAX];
    /* The sample in the board's hands: an answer with `payload` bytes, that leaves at `until_ns`. */
    uint8_t answer[BOARD_ANSWER_HEAD + BOARD_PAYLOAD_MAX];
    size_t payload;
    uint64_t entry_ns;
    uint64_t until_ns;
    bool busy;
    /* When the watchdog barks; BOARD_NEVER before the first drive and after barking. */
    uint64_t barks_ns;
};

/* A board at power-on. */
void board_init(struct board *board, const struct board_port *port);

/* Whether it holds a sample: then it takes no bytes. */
bool board_busy(const struct board *board);

/* Takes the next byte of the line. */
void board_byte(struct board *board, uint8_t byte);

/* Does what is due. */
void board_poll(struct board *board);

/* When `board_poll` is due next, or BOARD_NEVER. */
uint64_t board_due_ns(const struct board *board);

#endif
