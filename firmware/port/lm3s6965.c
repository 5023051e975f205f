/* The board on a Cortex-M3: start-up code, clock and serial line of the LM3S6965, as QEMU's machine lm3s6965evb has it.
 *
 *   UART0 interrupt ──► ring ──► board_byte      SysTick, every 10 ms ──► time, and the watchdog's turn
 *
 * Numbers of registers are from the data sheet of the LM3S6965, those of the core from the ARMv7-M manual.
 */
#include "../core/board.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))

#define CLOCK_STATE REGISTER(0x400fe050u)
#define CLOCK REGISTER(0x400fe060u)
#define CLOCK_BYPASS 0x00000800u
#define CLOCK_LOOP_OFF 0x00002000u
#define CLOCK_CRYSTAL 0x000003f0u /* which crystal, and whether it or the oscillator within is used */
#define CRYSTAL_8_MHZ 0x00000380u
#define CLOCK_DIVISOR 0x07c00000u
#define DIVISOR_4 0x01c00000u
#define LOOP_LOCKED 0x40u

#define RCGC1 REGISTER(0x400fe104u)
#define UART_DATA REGISTER(0x4000c000u)
#define UART_FLAGS REGISTER(0x4000c018u)
#define UART_DIVISOR REGISTER(0x4000c024u)
#define UART_FRACTION REGISTER(0x4000c028u)
#define UART_LINE REGISTER(0x4000c02cu)
#define UART_CONTROL REGISTER(0x4000c030u)
#define UART_LEVELS REGISTER(0x4000c034u)
#define UART_MASK REGISTER(0x4000c038u)
#define UART_CLEAR REGISTER(0x4000c044u)
#define RX_EMPTY 0x10u
#define TX_FULL 0x20u
#define RX_INTERRUPTS 0x50u /* the receive buffer has bytes, or has had some for a while */

#define SYSTICK_CONTROL REGISTER(0xe000e010u)
#define SYSTICK_RELOAD REGISTER(0xe000e014u)
#define SYSTICK_VALUE REGISTER(0xe000e018u)
#define INTERRUPT_ENABLE REGISTER(0xe000e100u)
#define INTERRUPT_STATE REGISTER(0xe000ed04u)
#define SYSTICK_PENDING 0x04000000u
#define UART_INTERRUPT 5

/* The clock of the core: the phase-locked loop behind the board's crystal of 8 MHz, 200 MHz, divided by 4. */
#define CYCLES_HZ 50000000u
#define CYCLE_NS 20u
#define LINE_BPS 1000000u
#define TICK_CYCLES 500000u
#define TICK_NS ((uint64_t)TICK_CYCLES * CYCLE_NS)

#define RING 1024u /* a power of two */

static volatile uint8_t ring[RING];
static volatile uint32_t ring_head, ring_tail, ring_overflown;
static volatile uint32_t ticks;
static uint8_t actuators[BOARD_PAYLOAD_MAX];
static struct board the_board;

/* What the compiler calls for copies and fills of its own. */
void *memcpy(void *to, const void *from, size_t length)
{
    uint8_t *out = to;
    const uint8_t *in = from;
    while (length-- > 0) {
        *out++ = *in++;
    }
    return to;
}

void *memset(void *to, int value, size_t length)
{
    uint8_t *out = to;
    while (length-- > 0) {
        *out++ = (uint8_t)value;
    }
    return to;
}

static void on_uart(void)
{
    UART_CLEAR = RX_INTERRUPTS;
    while ((UART_FLAGS & RX_EMPTY) == 0) {
        const uint8_t byte = (uint8_t)UART_DATA;
        if (ring_head - ring_tail < RING) {
            ring[ring_head % RING] = byte;
            ring_head++;
        } else {
            ring_overflown++;
        }
    }
}

static void on_systick(void)
{
    ticks++;
}

/* Whole ticks and the cycles since the last one; a tick that waits to be counted is counted here. */
static uint64_t clock_ns(void *context)
{
    uint32_t before, value, pending;
    (void)context;
    do {
        before = ticks;
        value = SYSTICK_VALUE;
        pending = INTERRUPT_STATE & SYSTICK_PENDING;
    } while (before != ticks);
    if (pending != 0 && value > TICK_CYCLES / 2) {
        before++;
    }
    return before * TICK_NS + (uint64_t)(TICK_CYCLES - 1 - value) * CYCLE_NS;
}

static void write_uart(void *context, const uint8_t *bytes, size_t length)
{
    (void)context;
    for (size_t i = 0; i < length; i++) {
        while ((UART_FLAGS & TX_FULL) != 0) {
        }
        UART_DATA = bytes[i];
    }
}

static void drive_actuators(void *context, const uint8_t *values, size_t length)
{
    (void)context;
    memcpy(actuators, values, length);
}

static void start_clock(void)
{
    CLOCK = (CLOCK | CLOCK_BYPASS) & ~CLOCK_DIVISOR;
    CLOCK = (CLOCK & ~(CLOCK_LOOP_OFF | CLOCK_CRYSTAL)) | CRYSTAL_8_MHZ;
    while ((CLOCK_STATE & LOOP_LOCKED) == 0) {
    }
    CLOCK = (CLOCK & ~CLOCK_BYPASS) | DIVISOR_4;
}

static void set_up(void)
{
    start_clock();
    RCGC1 |= 1;
    UART_CONTROL = 0;
    UART_DIVISOR = CYCLES_HZ / (16 * LINE_BPS);
    UART_FRACTION = (CYCLES_HZ % (16 * LINE_BPS)) * 64 / (16 * LINE_BPS);
    UART_LINE = 0x70;   /* 8 bits, buffers on */
    UART_LEVELS = 0;    /* an interrupt as soon as an eighth of the buffer is full */
    UART_MASK = RX_INTERRUPTS;
    UART_CONTROL = 0x301; /* on, both ways */
    INTERRUPT_ENABLE = 1u << UART_INTERRUPT;
    SYSTICK_RELOAD = TICK_CYCLES - 1;
    SYSTICK_VALUE = 0;
    SYSTICK_CONTROL = 7; /* on, with interrupts, by the clock of the core */
}

/* Sleeps until an interrupt; one that comes between the look and the sleep ends the sleep at once. */
static void rest(void)
{
    __asm volatile("cpsid i");
    if (ring_head == ring_tail) {
        __asm volatile("wfi");
    }
    __asm volatile("cpsie i");
}

static void run(void)
{
    const struct board_port port = {clock_ns, write_uart, drive_actuators, NULL};
    set_up();
    board_init(&the_board, &port);
    for (;;) {
        board_poll(&the_board);
        if (board_busy(&the_board)) {
            continue;
        }
        if (ring_head == ring_tail) {
            rest();
            continue;
        }
        the_board.counts.overflown = ring_overflown;
        board_byte(&the_board, ring[ring_tail % RING]);
        ring_tail++;
    }
}

/* From the linker script; the end of the stack is no function, but stands in a table of them. */
extern void stack_top(void);
extern uint32_t data_begin, data_end, data_image, bss_begin, bss_end;

/* After reset: variables with values are copied from flash, the others are cleared. */
void reset(void)
{
    memcpy(&data_begin, &data_image, (size_t)((uint8_t *)&data_end - (uint8_t *)&data_begin));
    memset(&bss_begin, 0, (size_t)((uint8_t *)&bss_end - (uint8_t *)&bss_begin));
    run();
}

static void halt(void)
{
    for (;;) {
    }
}

/* The first words of flash: stack, then what answers to exceptions, then to interrupts. */
__attribute__((section(".vectors"), used)) static void (*const vectors[16 + UART_INTERRUPT + 1])(void) = {
    [0] = stack_top,
    [1] = reset,
    [2] = halt,
    [3] = halt,
    [4] = halt,
    [5] = halt,
    [6] = halt,
    [15] = on_systick,
    [16 + UART_INTERRUPT] = on_uart,
};
