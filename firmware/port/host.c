/* The board as a process of this machine: its line is a terminal or a unix socket, named on the command line.
 *
 *   board PATH
 *
 * It ends when the other side closes the line.
 */
#define _GNU_SOURCE
#include "../core/board.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static uint64_t monotonic_ns(void *context)
{
    struct timespec now;
    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Writes all of it; what a closed line does not take is lost, as on a wire that nobody listens to. */
static void write_line(void *context, const uint8_t *bytes, size_t length)
{
    const int line = *(const int *)context;
    while (length > 0) {
        const ssize_t n = write(line, bytes, length);
        if (n < 0 && errno != EINTR) {
            return;
        }
        if (n > 0) {
            bytes += n;
            length -= (size_t)n;
        }
    }
}

/* Here no actuator hangs on the outputs: they go back with the answer. */
static void drive_nothing(void *context, const uint8_t *values, size_t length)
{
    (void)context;
    (void)values;
    (void)length;
}

static int connect_socket(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const int line = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (strlen(path) >= sizeof name.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(name.sun_path, path);
    return line >= 0 && connect(line, (const struct sockaddr *)&name, sizeof name) == 0 ? line : -1;
}

static int open_terminal(const char *path)
{
    struct termios raw;
    const int line = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (line < 0 || tcgetattr(line, &raw) != 0) {
        return -1;
    }
    cfmakeraw(&raw);
    return tcsetattr(line, TCSANOW, &raw) == 0 ? line : -1;
}

static int open_line(const char *path)
{
    struct stat what;
    if (stat(path, &what) != 0) {
        return -1;
    }
    return S_ISSOCK(what.st_mode) ? connect_socket(path) : open_terminal(path);
}

/* Sleeps until the line can be read, is closed, or the board has something to do; what is seen of the line. */
static short wait_for(const struct board *board, int line)
{
    struct pollfd end = {.fd = line, .events = board_busy(board) ? 0 : POLLIN};
    const uint64_t now = monotonic_ns(NULL), due = board_due_ns(board);
    const uint64_t left = due > now ? due - now : 0;
    const struct timespec limit = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
    return ppoll(&end, 1, due == BOARD_NEVER ? NULL : &limit, NULL) > 0 ? end.revents : 0;
}

/* A board that is busy takes no bytes: they wait here, and on the line. */
static int serve(int line)
{
    struct board board;
    const struct board_port port = {monotonic_ns, write_line, drive_nothing, &line};
    uint8_t bytes[256];
    ssize_t have = 0, at = 0;
    board_init(&board, &port);
    for (;;) {
        const short seen = wait_for(&board, line);
        board_poll(&board);
        if (seen & POLLIN) {
            at = 0;
            have = read(line, bytes, sizeof bytes);
            if (have <= 0) {
                return 0;
            }
        } else if (seen != 0) {
            return 0;
        }
        while (at < have && !board_busy(&board)) {
            board_byte(&board, bytes[at++]);
        }
    }
}

int main(int count, char **words)
{
    if (count != 2) {
        fprintf(stderr, "usage: %s LINE\n", words[0]);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    const int line = open_line(words[1]);
    if (line < 0) {
        fprintf(stderr, "%s: %s: %s\n", words[0], words[1], strerror(errno));
        return 2;
    }
    return serve(line);
}
