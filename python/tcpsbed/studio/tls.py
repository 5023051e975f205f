"""A connection under TLS that one thread reads while others write, which `ssl.SSLSocket` does not promise."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from typing import Any

_SAID = b"This port speaks https: begin the address with https://\n"
PLAIN = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(_SAID), _SAID)
)
"""The answer to a browser that speaks HTTP without TLS."""


class Sealed:
    """A connected socket under TLS of a server, for what uses it as a socket.

    The handshake is part of the first `recv`. Records leave in the order in which they were made: whoever makes one holds
    `sending` until it is out. No lock is held while `recv` waits.

    Parameters
    ----------
    line : socket.socket
        The connection.
    context : ssl.SSLContext
        Of a server.
    """

    def __init__(self, line: socket.socket, context: ssl.SSLContext) -> None:
        self.line = line
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        self.state, self.sending = threading.Lock(), threading.Lock()
        self.shaken = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.line, name)

    def recv(self, size: int) -> bytes:
        """What arrived; empty at the end.

        Raises
        ------
        OSError
            As of any socket, and `ssl.SSLError` for what is no TLS.
        """
        while True:
            came = self.line.recv(size)
            if not came:
                return b""
            try:
                with self.state:
                    self.incoming.write(came)
                    text, ended = self._read()
            except ssl.SSLError as error:
                if error.reason == "HTTP_REQUEST":
                    self.outgoing.read()
                    self.line.sendall(PLAIN)
                raise
            finally:
                if self.outgoing.pending:  # of the handshake, or an alert
                    self._flush()
            if text or ended:
                return text

    def _read(self) -> tuple[bytes, bool]:
        """All that can be decrypted, and whether the other side has said that this is all."""
        found = bytearray()
        try:
            if not self.shaken:
                self.tls.do_handshake()
                self.shaken = True
            while piece := self.tls.read(1 << 16):
                found += piece
        except ssl.SSLWantReadError:
            return bytes(found), False
        except ssl.SSLZeroReturnError:
            pass
        return bytes(found), True

    def sendall(self, text: bytes) -> None:
        """Sends all of it.

        Raises
        ------
        OSError
            As of any socket.
        """
        with self.sending:
            with self.state:
                self.tls.write(text)
                sealed = self.outgoing.read()
            self.line.sendall(sealed)

    def _flush(self) -> None:
        with self.sending:
            with self.state:
                sealed = self.outgoing.read()
            self.line.sendall(sealed)

    def shutdown(self, how: int) -> None:
        """Says that nothing follows, and ends a direction."""
        self._bid_farewell()
        self.line.shutdown(how)

    def close(self) -> None:
        """Closes the connection; who waits in `recv` gets nothing."""
        self._bid_farewell()
        with suppress(OSError):
            self.line.shutdown(socket.SHUT_RDWR)
        self.line.close()

    def _bid_farewell(self) -> None:
        """A notice of the end, where it can go out at once."""
        if not self.shaken or not self.sending.acquire(blocking=False):
            return
        try:
            with suppress(OSError, ValueError), self.state:
                with suppress(ssl.SSLError):
                    self.tls.unwrap()
                self.line.send(self.outgoing.read(), socket.MSG_DONTWAIT)
        finally:
            self.sending.release()
