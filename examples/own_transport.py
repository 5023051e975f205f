"""A transport of your own: each sample leaves at once, in a datagram of its own. Scenario: examples/own_transport.toml."""

import struct

HEADER = struct.Struct("!HIqB")  # flow, number, origin time in ns, bytes of the echo command


class NoMerge:
    def __init__(self, channel, overhead_bytes=HEADER.size + 54):
        # what links are charged beside the sample: with UDP, IPv4, Ethernet
        self.overhead_bytes = overhead_bytes

    def on_input(self, now_ns, kind, data, out):
        if kind == "sample":
            header = HEADER.pack(data.flow, data.index, data.origin_ns, len(data.echo))
            size = len(data.bytes) + self.overhead_bytes
            out.transmit(header + data.echo + data.bytes, data.flow, data.index, size)
        elif kind == "datagram":
            flow, index, origin_ns, echo_bytes = HEADER.unpack_from(data.bytes)
            sample = HEADER.size + echo_bytes
            out.deliver(flow, index, origin_ns, data.bytes[sample:], data.bytes[HEADER.size : sample])
