"""What to do when a server's TLS is refused: this client trusts what Python's `ssl` trusts, SSL_CERT_FILE included."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from urllib.parse import urlsplit

SELF_SIGNED = 18
OTHER_NAME = {62, 64}
"""OpenSSL's verify codes. Source: openssl/x509_vfy.h, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, _HOSTNAME_MISMATCH and
_IP_ADDRESS_MISMATCH."""
EXPIRED = 10
UNKNOWN_ISSUERS = {2, 19, 20, 21}
"""The chain ends at a certificate authority that is not trusted here."""
PLAIN_HTTP = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST"}
FILE = "SSL_CERT_FILE"


def hint(problem: object, url: str) -> str | None:
    """The next step after a failed TLS handshake; None where it was none.

    Args:
        problem: what the connection failed with.
        url: the server's base.
    """
    if isinstance(problem, ssl.SSLCertVerificationError):
        return _untrusted(problem.verify_code, url)
    if isinstance(problem, ssl.SSLError) and problem.reason in PLAIN_HTTP:
        return f"it seems to speak plain http: http{url.removeprefix('https')}"
    return None


def _untrusted(code: int, url: str) -> str | None:
    if code in OTHER_NAME:
        return "the certificate is for other names: use the address that it is made out to"
    if code == EXPIRED:
        return "the certificate has expired, or the clock here is wrong: renew it on the server"
    named = os.environ.get(FILE)
    if named and not Path(named).is_file():
        return f"{FILE} is {named}, and there is no such file"
    if code == SELF_SIGNED:
        parts = urlsplit(url)
        save = f"openssl s_client -connect {parts.hostname}:{parts.port or 443} </dev/null | openssl x509 > server.pem"
        return f"if it is yours, trust its own certificate: {save}; export {FILE}=server.pem"
    if code in UNKNOWN_ISSUERS:
        return f"export {FILE}=ca.pem, a file with the certificate of the authority that signed the server's"
    return None
