"""`tls` as MicroPython has it, made of CPython's `ssl`.

What differs from `ssl`: certificates are handed over by position, one DER or several PEM; a socket
that is wrapped is a stream; a certificate that does not convince is a ValueError; and data that is
decrypted already counts as readable when polled. `verify_callback` is asked for the server's own
certificate only, once the handshake is over and before anything else is sent.
"""

import errno
import ssl
from ssl import CERT_NONE, CERT_OPTIONAL, CERT_REQUIRED  # noqa: F401

import chip_socket

PROTOCOL_TLS_CLIENT = 0
PROTOCOL_TLS_SERVER = 1

_MP_STREAM_POLL = 3
_READABLE = 1
_WRITABLE = 4
_FATAL_ERROR = -0x3000  # mbedTLS's MBEDTLS_ERR_X509_FATAL_ERROR
_CONNECTION_EOF = -0x7280  # mbedTLS's MBEDTLS_ERR_SSL_CONN_EOF


class SSLContext:
    """Certificates and what to check."""

    def __init__(self, protocol):
        server = protocol == PROTOCOL_TLS_SERVER
        self.verify_callback = None
        self._context = ssl.SSLContext(
            ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT
        )

    @property
    def verify_mode(self):
        return self._context.verify_mode

    @verify_mode.setter
    def verify_mode(self, mode):
        if mode == CERT_NONE:
            self._context.check_hostname = False
        self._context.verify_mode = mode

    def load_verify_locations(self, certificates, /):
        """Trust one DER certificate or several PEM ones; ValueError when they are neither."""
        if b"-----BEGIN " in certificates:
            certificates = certificates.decode()
        try:
            self._context.load_verify_locations(cadata=certificates)
        except ssl.SSLError:
            raise ValueError("invalid cert") from None

    def wrap_socket(
        self, sock, *, server_side=False, do_handshake_on_connect=True, server_hostname=None
    ):
        return _Stream(
            self._context.wrap_socket(
                sock,
                server_side=server_side,
                do_handshake_on_connect=do_handshake_on_connect,
                server_hostname=server_hostname,
            ),
            self.verify_callback,
        )


class _Stream:
    """What `wrap_socket` gives: the handshake happens in the first reads and writes."""

    def __init__(self, wrapped, verify):
        self._wrapped = wrapped
        self._verify = verify  # until the handshake is over
        self._wants = 0  # the only direction that helps, when the last call was in want of one
        self._failed = None

    def readinto(self, buffer, size=0):
        return self._attempt(self._wrapped.recv_into, buffer, size)

    def write(self, buffer):
        return self._attempt(self._wrapped.send, buffer)

    def _attempt(self, action, *arguments):
        if self._wrapped.fileno() < 0:
            raise OSError(errno.EBADF)
        if self._failed is not None:
            raise self._failed
        self._wants = 0
        try:
            if self._verify:
                self._wrapped.do_handshake()
                if self._verify(self._wrapped.getpeercert(True), 0):
                    self._failed = OSError(_FATAL_ERROR, "MBEDTLS_ERR_X509_FATAL_ERROR")
                    raise self._failed
                self._verify = None
            return action(*arguments)
        except ssl.SSLWantReadError:
            self._wants = _READABLE
        except ssl.SSLWantWriteError:
            self._wants = _WRITABLE
        except ssl.SSLCertVerificationError as error:
            raise ValueError(error.verify_message) from None
        except ssl.SSLEOFError:
            self._failed = OSError(_CONNECTION_EOF)
            raise self._failed from None
        except OSError as error:
            self._failed = error
            raise
        return None

    def ioctl(self, request, flags):
        if request != _MP_STREAM_POLL:
            return -1
        ready = 0
        if self._wants:
            flags = self._wants
        elif flags & _READABLE and self._wrapped.fileno() >= 0 and self._wrapped.pending():
            ready = _READABLE
        return ready | chip_socket.poll_descriptor(self._wrapped.fileno(), flags)

    def setblocking(self, flag):
        self._wrapped.setblocking(flag)

    def close(self):
        self._wrapped.close()
