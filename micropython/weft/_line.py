"""The protocol of a serial line below a session: START, packets, and sending lost packets again
(WIRE-LINKS.md 12.6, 13). The caller does the input and output, and passes the time.

Invariants
- `give` takes and `input` returns bytes of the session. While the line is linked, these bytes
  belong to one start of one peer.
- A packet is taken whole or not at all, and only if it is the next packet. After bytes that are not
  a packet, the next zero byte begins a new packet.
- `kept` contains the packets from number `base` on that are not acknowledged. The first `sent` of
  them have been sent since passed() last had all of them sent again.
"""

import struct

try:
    from binascii import crc32
except ImportError:  # a port without this module

    def crc32(data, c=0):
        c ^= 0xFFFFFFFF
        for b in data:
            c ^= b
            for _ in range(8):
                c = c >> 1 ^ (0xEDB88320 if c & 1 else 0)
        return c ^ 0xFFFFFFFF


MAGIC = b"WEFTLINE"
FORM = "<IIIHH"  # checksum, number, acknowledged, length, flags
HEAD = 16
START = 40
LONGEST = 1056  # the largest number of bytes of a packet in COBS
ALL = 0xFFFFFFFF
NEVER = 1 << 60


def cobs(data, out):
    """Appends to `out` the data in COBS, and a zero byte."""
    for piece in bytes(data).split(b"\0"):
        while len(piece) >= 254:
            out.append(255)
            out.extend(piece[:254])
            piece = piece[254:]
        out.append(len(piece) + 1)
        out.extend(piece)
    out.append(0)


def uncobs(data):
    """Decodes the bytes between two zero bytes. Returns None if they are not COBS."""
    out, i, n = bytearray(), 0, len(data)
    while i < n:
        code = data[i]
        if code == 0 or code > n - i:
            return None
        out.extend(data[i + 1 : i + code])
        i += code
        if code != 255 and i < n:
            out.append(0)
    return out


class Line:
    """One end of a serial line.

    Args:
        token: a random number that names this start.
        most: the largest number of bytes of the session in a packet. again: milliseconds until a
        packet that is not acknowledged is sent again. lease: milliseconds without a packet after
        which the peer counts as lost; 0 means never.
    """

    window = 4  # the limit on unacknowledged packets

    def __init__(self, token, most=192, again=200, lease=3000):
        self.mine, self.theirs = token, 0
        self.most, self.again, self.lease = most, again, lease
        self.asked = (lease, again)
        self.linked = self.owes = self.says = False
        # Whether a packet of the peer has come. After that, the peer's STARTs have this end's
        # token, unless the peer has restarted.
        self.knows_me = False
        self.lost = None  # the reason why the peer is lost
        self.piece = bytearray()
        self.base = self.due_ = self.sent = self.whiles = 0
        self.kept = []
        self.start_at = self.heard = self.beat_at = 0
        self.again_at = NEVER

    def key(self, a, b):
        return crc32(struct.pack("<II", a, b)) & ALL

    def room(self):
        return self.linked and not self.lost and len(self.kept) < self.window

    def give(self, data):
        """Queues a packet of at most `most` bytes. The caller has checked room()."""
        self.kept.append(data)

    def input(self, data, now):
        """Takes bytes from the line. Returns the session's bytes that they contain."""
        got = bytearray()
        at = 0
        while True:
            zero = data.find(b"\0", at)
            part = data[at:] if zero < 0 else data[at:zero]
            if len(self.piece) <= LONGEST:
                self.piece.extend(part)
            if zero < 0:
                return got
            if 0 < len(self.piece) <= LONGEST:
                p = uncobs(self.piece)
                if p is not None and not self.lost:
                    self.packet(p, now, got)
            self.piece = bytearray()
            at = zero + 1

    def packet(self, p, now, got):
        n = len(p)
        if n < HEAD:
            return
        rest = memoryview(p)[4:]
        check = crc32(rest) & ALL
        head = struct.unpack_from(FORM, p)
        if n == START and head[0] == check and p[4:12] == MAGIC:
            return self.started(p, now)
        if not self.theirs or head[0] ^ self.key(self.theirs, self.mine) != check:
            return
        _, number, acknowledged, length, flags = head
        if flags > 1 or n != HEAD + length:
            return
        if not self.linked:
            self.link(now)
        self.heard = now
        self.knows_me = True
        moves = (acknowledged - self.base) & ALL
        if 0 < moves <= len(self.kept):
            self.base = acknowledged
            self.kept = self.kept[moves:]
            self.sent = max(0, self.sent - moves)
            self.whiles = 0
            self.again_at = now + self.again if self.kept else NEVER
        if flags:
            self.owes = True
            if number == self.due_:
                self.due_ = (number + 1) & ALL
                got.extend(p[HEAD:])

    def started(self, p, now):
        a, b, lease, again = struct.unpack_from("<IIII", p, 12)
        if a == 0 or a == self.mine:
            return
        if self.linked:
            # The peer might even have restarted with the same token.
            if a != self.theirs or (self.knows_me and not b):
                self.lost = "it has started anew"
            else:
                self.heard = now
                self.says = self.says or b != self.mine
            return
        self.says = True
        if b not in (0, self.mine):
            return
        self.theirs = a
        mine, same = self.asked
        self.lease = max(mine, min(lease, 3600000)) if mine and lease else 0
        self.again = max(same, min(again, 60000))
        if b == self.mine:
            self.link(now)

    def link(self, now):
        self.linked = True
        self.heard = now
        self.beat_at = now + self.lease // 3

    def make(self, number, data, flags, line):
        p = bytearray(struct.pack(FORM, 0, number, self.due_, len(data), flags))
        p.extend(data)
        struct.pack_into(
            "<I", p, 0, (crc32(memoryview(p)[4:]) & ALL) ^ self.key(self.mine, self.theirs)
        )
        cobs(p, line)
        self.owes = False

    def output(self, now, line):
        """Appends to `line` the bytes to send now."""
        if self.lost:
            return
        if self.says or (not self.linked and now >= self.start_at):
            self.says = False
            self.start_at = now + self.again
            rest = MAGIC + struct.pack(
                "<IIIIIII", self.mine, self.theirs, self.asked[0], self.asked[1], 0, 0, 0
            )
            cobs(struct.pack("<I", crc32(rest) & ALL) + rest, line)
        if not self.linked:
            return
        before = len(line)
        while self.sent < len(self.kept):
            self.make((self.base + self.sent) & ALL, self.kept[self.sent], 1, line)
            self.sent += 1
        if self.owes or (self.lease and now >= self.beat_at):
            self.make(0, b"", 0, line)
        if len(line) > before:
            self.beat_at = now + self.lease // 3
        if not self.kept:
            self.again_at = NEVER
        elif self.again_at == NEVER:
            self.again_at = now + self.again

    def passed(self, now):
        """Checks the time: has unacknowledged packets sent again if they are old enough, and ends
        the line if the lease is over.
        """
        if not self.linked or self.lost:
            return
        if self.lease and now - self.heard >= self.lease:
            self.lost = "nothing was heard of it for the lease"
        if now < self.again_at:
            return
        self.again_at = NEVER
        self.sent = 0
        self.whiles += 1
        if self.lease and self.whiles >= 10 + 2 * (self.lease // self.again):
            self.lost = "it acknowledges nothing"

    def due(self):
        """Returns the time at which output() or passed() must be called next."""
        if self.lost:
            return NEVER
        if self.says:
            return 0
        if not self.linked:
            return self.start_at
        lease = min(self.beat_at, self.heard + self.lease) if self.lease else NEVER
        return min(self.again_at, lease)
