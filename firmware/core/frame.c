#include "frame.h"

/* The CRC of each half byte. */
static const uint16_t HALF[16] = {
    0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
    0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef,
};

uint16_t frame_crc(const uint8_t *bytes, size_t length)
{
    uint16_t crc = 0xffff;
    for (size_t i = 0; i < length; i++) {
        crc = (uint16_t)((crc << 4) ^ HALF[(crc >> 12) ^ (bytes[i] >> 4)]);
        crc = (uint16_t)((crc << 4) ^ HALF[(crc >> 12) ^ (bytes[i] & 15)]);
    }
    return crc;
}

size_t frame_write(const uint8_t *body, size_t length, uint8_t line[FRAME_LINE_MAX])
{
    const uint16_t crc = frame_crc(body, length);
    size_t count = 0, at = 1;
    for (size_t i = 0; i < length + 2; i++) {
        const uint8_t byte = i < length ? body[i] : (uint8_t)(i == length ? crc >> 8 : crc);
        if (byte == 0) {
            line[count] = (uint8_t)(at - count);
            count = at;
        } else {
            line[at] = byte;
        }
        at++;
    }
    line[count] = (uint8_t)(at - count);
    line[at++] = 0;
    return at;
}

/* Decodes in place: what is read is always ahead of what is written. False if a count leads past the end. */
static bool unstuff(struct frame_reader *reader)
{
    size_t in = 0, out = 0;
    while (in < reader->length) {
        const size_t count = reader->bytes[in++];
        if (in + count - 1 > reader->length) {
            return false;
        }
        for (size_t i = 1; i < count; i++) {
            reader->bytes[out++] = reader->bytes[in++];
        }
        if (count < 255 && in < reader->length) {
            reader->bytes[out++] = 0;
        }
    }
    reader->length = out;
    return true;
}

static enum frame_event complete(struct frame_reader *reader)
{
    if (reader->too_long) {
        return FRAME_TOO_LONG;
    }
    if (reader->length == 0) {
        return FRAME_NOTHING;
    }
    if (!unstuff(reader)) {
        return FRAME_NO_COBS;
    }
    if (reader->length < FRAME_BODY_MIN + 2) {
        return FRAME_SHORT;
    }
    reader->length -= 2;
    const uint16_t crc = (uint16_t)(reader->bytes[reader->length] << 8 | reader->bytes[reader->length + 1]);
    return crc == frame_crc(reader->bytes, reader->length) ? FRAME_BODY : FRAME_NO_CRC;
}

enum frame_event frame_read(struct frame_reader *reader, uint8_t byte)
{
    if (reader->complete) {
        reader->length = 0;
        reader->too_long = reader->complete = false;
    }
    if (byte == 0) {
        reader->complete = true;
        return complete(reader);
    }
    if (reader->length < FRAME_LINE_MAX - 1) {
        reader->bytes[reader->length++] = byte;
    } else {
        reader->too_long = true;
    }
    return FRAME_NOTHING;
}
