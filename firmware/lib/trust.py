"""Which servers a TLS connection believes: a context that trusts the certificates given."""

import binascii

import tls

_BEGIN = b"-----BEGIN CERTIFICATE-----"
_END = b"-----END CERTIFICATE-----"


def client_context(certificates):
    """Return an SSLContext that demands a chain to one of `certificates`, one DER or PEM text.

    Not every port's mbedTLS reads PEM, so it is turned into DER here. What stands around the
    certificates is ignored, and so is one that the port cannot use. ValueError: none is left.
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
    return context


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
