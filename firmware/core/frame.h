/* Frames on a serial line: COBS(body | CRC-16) and a zero byte behind it.
 *
 *   body, 3 to 252 bytes | CRC-16/CCITT-FALSE of the body, 2 bytes, high byte first
 *   together at most 254 bytes, so that COBS (Cheshire and Baker 1999) adds exactly one; the zero adds another
 *
 * A zero byte never occurs within a frame, so that a reader is in step again at the next one, whatever came before.
 */
#ifndef FRAME_H
#define FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_BODY_MIN 3u
#define FRAME_BODY_MAX 252u
/* What COBS, CRC and the zero add to a body. */
#define FRAME_OVERHEAD 4u
#define FRAME_LINE_MAX (FRAME_BODY_MAX + FRAME_OVERHEAD)

/* What a byte has completed. */
enum frame_event {
    FRAME_NOTHING,  /* a frame is not complete yet, or two zeros in a row */
    FRAME_BODY,     /* a frame: its body is `bytes[0..length]` */
    FRAME_NO_COBS,  /* a count led past the end of the frame */
    FRAME_NO_CRC,   /* the CRC is not that of the body */
    FRAME_SHORT,    /* fewer bytes than a body has */
    FRAME_TOO_LONG, /* no zero for longer than a frame lasts */
};

/* Takes bytes one at a time. */
struct frame_reader {
    uint8_t bytes[FRAME_LINE_MAX];
    size_t length;
    bool too_long;
    bool complete;
};

/* CRC-16/CCITT-FALSE: polynomial 0x1021, begins with 0xFFFF. */
uint16_t frame_crc(const uint8_t *bytes, size_t length);

/* Writes the frame of a body of at most FRAME_BODY_MAX bytes; returns its length. */
size_t frame_write(const uint8_t *body, size_t length, uint8_t line[FRAME_LINE_MAX]);

/* Takes the next byte of a line; after FRAME_BODY the body is there until the next call. */
enum frame_event frame_read(struct frame_reader *reader, uint8_t byte);

#endif
