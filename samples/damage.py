"""What happens to files on their way: scanned, locked with a password, cut off in an upload."""

from __future__ import annotations

import hashlib

import pymupdf

#: The padding string of the PDF standard security handler (ISO 32000-1, 7.6.3.3).
_PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")
#: Print and copy forbidden, screen reading allowed.
_PERMISSIONS = -3392


def scanned(pdf: bytes, *, dpi: int = 140, skew_degrees: float = 0.3, quality: int = 55) -> bytes:
    """The pages as grey JPEG images a little askew, with no text layer."""
    source, result = pymupdf.open(stream=pdf), pymupdf.open()
    for page in source:
        zoom = pymupdf.Matrix(dpi / 72, dpi / 72).prerotate(skew_degrees)
        pixels = page.get_pixmap(matrix=zoom, colorspace=pymupdf.csGRAY, alpha=False)
        image = pixels.tobytes("jpg", jpg_quality=quality)
        result.new_page(width=page.rect.width, height=page.rect.height).insert_image(page.rect, stream=image)
    return result.tobytes(garbage=4, deflate=True, no_new_id=True)


def turned(pdf: bytes) -> bytes:
    """The same pages stored upright with /Rotate 90: a reader sees no difference, a parser does."""
    document = pymupdf.open(stream=pdf)
    for page in document:
        width, height = page.rect.width, page.rect.height
        drawn = page.read_contents()
        first = page.get_contents()[0]
        document.update_stream(first, b"q 0 1 -1 0 %g 0 cm\n%s\nQ" % (height, drawn))
        page.set_contents(first)
        page.set_mediabox(pymupdf.Rect(0, 0, height, width))
        page.set_rotation(90)
    return document.tobytes(garbage=4, deflate=True, no_new_id=True)


def cut_off(pdf: bytes, *, share: float = 0.5) -> bytes:
    """The first part of the file, as an interrupted upload leaves it."""
    return pdf[: int(len(pdf) * share)]


def locked(pdf: bytes, *, user_password: str, owner_password: str) -> bytes:
    """The PDF behind a password (RC4, 128 bit).

    Written here because PyMuPDF puts random bytes into each encrypted file, and a sample must not change from run to
    run. The file holds no strings outside of its streams, so streams are all that there is to encrypt.
    """
    document = pymupdf.open(stream=pdf)
    document.set_metadata({})
    document = pymupdf.open(stream=document.tobytes(garbage=4, deflate=True, no_new_id=True))
    identity = hashlib.md5(pdf).digest()
    owner = _owner_entry(user_password, owner_password)
    key = _file_key(user_password, owner, identity)
    user = _rounds(hashlib.md5(_PADDING + identity).digest(), key, range(20)) + bytes(16)
    encrypt = f"/Encrypt<</Filter/Standard/V 2/R 3/Length 128/P {_PERMISSIONS}/O<{owner.hex()}>/U<{user.hex()}>>>"
    return _written(document, key, f"{encrypt}/ID[<{identity.hex()}><{identity.hex()}>]")


def _written(document: pymupdf.Document, key: bytes, trailer: str) -> bytes:
    out, offsets = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"), []
    for number in range(1, document.xref_length()):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{document.xref_object(number, compressed=True)}\n".encode()
        if document.xref_is_stream(number):
            salted = hashlib.md5(key + number.to_bytes(3, "little") + bytes(2)).digest()
            out += b"stream\n" + _rc4(salted, document.xref_stream_raw(number)) + b"\nendstream\n"
        out += b"endobj\n"
    start = len(out)
    rows = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    out += f"xref\n0 {len(offsets) + 1}\n0000000000 65535 f \n{rows}".encode()
    out += f"trailer\n<</Size {len(offsets) + 1}/Root {document.pdf_catalog()} 0 R{trailer}>>\n".encode()
    return bytes(out + f"startxref\n{start}\n%%EOF\n".encode())


def _owner_entry(user_password: str, owner_password: str) -> bytes:
    digest = _padded(owner_password)
    for _ in range(51):
        digest = hashlib.md5(digest).digest()
    return _rounds(_padded(user_password), digest, range(20))


def _file_key(user_password: str, owner: bytes, identity: bytes) -> bytes:
    permissions = (_PERMISSIONS & 0xFFFFFFFF).to_bytes(4, "little")
    digest = hashlib.md5(_padded(user_password) + owner + permissions + identity).digest()
    for _ in range(50):
        digest = hashlib.md5(digest).digest()
    return digest


def _rounds(data: bytes, key: bytes, numbers: range) -> bytes:
    for number in numbers:
        data = _rc4(bytes(byte ^ number for byte in key), data)
    return data


def _padded(password: str) -> bytes:
    return (password.encode("latin-1") + _PADDING)[:32]


def _rc4(key: bytes, data: bytes) -> bytes:
    state, j = list(range(256)), 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out, i, j = bytearray(), 0, 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)
