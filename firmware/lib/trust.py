"""Which servers a TLS connection believes: a context that trusts the certificates given."""

import binascii
import hashlib

import tls
from micropython import const

_BEGIN = b"-----BEGIN CERTIFICATE-----"
_END = b"-----END CERTIFICATE-----"
#: what a handshake ends with, as an OSError, when a chain or the pin does not convince mbedTLS
NOT_CONVINCED = const(-0x3000)  # MBEDTLS_ERR_X509_FATAL_ERROR


def client_context(certificates, pin=""):
    """Return an SSLContext that demands a chain to one of `certificates`, one DER or PEM text.

    `pin`: the SHA-256 of the server's own certificate (its DER; hexadecimal, colons or none): with
    it no other one is believed, whoever has signed it. Names and dates are checked all the same.

    Not every port's mbedTLS reads PEM, so it is turned into DER here. What stands around the
    certificates is ignored, and so is one that the port cannot use. ValueError: none is left, or
    the pin is none.
    """
    context = tls.SSLContext(tls.PROTOCOL_TLS_CLIENT)
    # said although it is the default; the stub of `tls` lacks it
    context.verify_mode = tls.CERT_REQUIRED  # type: ignore[attr-defined]
    loaded = 0
    for certificate in _each(certificates):
        try:
            context.load_verify_locations(certificate)
            loaded += 1
        except ValueError:
            pass
    if not loaded:
        raise ValueError("no usable certificate, neither PEM nor DER")
    if pin:
        context.verify_callback = _pinned(pin)  # type: ignore[attr-defined]
    return context


def _pinned(pin):
    """Return what mbedTLS asks for each certificate of a chain that it would accept."""
    try:
        digest = binascii.unhexlify(pin.replace(":", ""))
    except ValueError:
        digest = b""
    if len(digest) != 32:
        raise ValueError("the pin is not a SHA-256 of 64 hexadecimal digits")

    def verify(certificate, depth):
        # an exception could not pass through mbedTLS
        matches = depth > 0 or hashlib.sha256(certificate).digest() == digest
        return 0 if matches else NOT_CONVINCED

    return verify


def _each(certificates):
    if _BEGIN not in certificates:
        yield certificates
    end = 0
    while True:
        start = certificates.find(_BEGIN, end)
        end = certificates.find(_END, start)
        if start < 0 or end < 0:
            return
        yield binascii.a2b_base64(certificates[start + len(_BEGIN) : end])
