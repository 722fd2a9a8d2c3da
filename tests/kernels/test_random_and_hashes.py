"""Random numbers, hashes, ciphers, checksums, and string search."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator

import numpy as np
import pytest

from simt.gpu import Module

SOURCE = r"""
// Marsaglia's xorshift, one stream a thread.
extern "C" __global__ void xorshift(unsigned *state, unsigned *out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  unsigned s = state[i];
  for (int k = 0; k < count; ++k) {
    s ^= s << 13;
    s ^= s >> 17;
    s ^= s << 5;
    out[k * threads + i] = s;
  }
  state[i] = s;
}

// Philox 4x32-10: a counter and a key give four numbers.
__device__ uint4 philox(uint4 c, uint2 key) {
  for (int round = 0; round < 10; ++round) {
    const unsigned low0 = 0xD2511F53u * c.x, high0 = __umulhi(0xD2511F53u, c.x);
    const unsigned low1 = 0xCD9E8D57u * c.z, high1 = __umulhi(0xCD9E8D57u, c.z);
    c = make_uint4(high1 ^ c.y ^ key.x, low1, high0 ^ c.w ^ key.y, low0);
    key.x += 0x9E3779B9u;
    key.y += 0xBB67AE85u;
  }
  return c;
}
extern "C" __global__ void philox_stream(uint4 *out, unsigned long long first, uint2 key, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned long long c = first + i;
  out[i] = philox(make_uint4((unsigned)c, (unsigned)(c >> 32), 0, 0), key);
}

// Darts at a quarter of a circle, whole numbers throughout.
extern "C" __global__ void darts(unsigned long long *hits, int each, uint2 key) {
  unsigned long long mine = 0;
  for (int k = 0; k < each; ++k) {
    const uint4 r = philox(make_uint4(k, blockIdx.x * blockDim.x + threadIdx.x, 0, 0), key);
    const unsigned long long x = (unsigned long long)r.x << 32, y = (unsigned long long)r.y << 32;
    const unsigned long long square = __umul64hi(x, x);
    mine += square + __umul64hi(y, y) >= square;  // no carry: the sum is less than 1
  }
  for (int d = 16; d > 0; d /= 2) mine += __shfl_down_sync(~0u, mine, d);
  if (threadIdx.x % 32 == 0) atomicAdd(hits, mine);
}

extern "C" __global__ void fnv1a(const unsigned char *text, const int *begin, unsigned long long *hash,
                                 int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned long long h = 0xcbf29ce484222325ull;
  for (int k = begin[i]; k < begin[i + 1]; ++k) h = (h ^ text[k]) * 0x100000001b3ull;
  hash[i] = h;
}

extern "C" __global__ void murmur3(const unsigned char *text, const int *begin, unsigned *hash, unsigned seed,
                                   int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned char *p = text + begin[i];
  const int length = begin[i + 1] - begin[i];
  unsigned h = seed, k = 0;
  const auto left = [](unsigned v, int by) { return __funnelshift_l(v, v, by); };
  const auto mix = [&](unsigned k) { return left(k * 0xcc9e2d51u, 15) * 0x1b873593u; };
  for (int b = 0; b + 4 <= length; b += 4) {
    k = p[b] | p[b + 1] << 8 | p[b + 2] << 16 | (unsigned)p[b + 3] << 24;
    h = left(h ^ mix(k), 13) * 5 + 0xe6546b64u;
  }
  k = 0;
  switch (length & 3) {
    case 3: k ^= p[(length & ~3) + 2] << 16;
    case 2: k ^= p[(length & ~3) + 1] << 8;
    case 1: k ^= p[length & ~3]; h ^= mix(k);
  }
  h ^= length;
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  hash[i] = h ^ h >> 16;
}

__constant__ unsigned sha_k[64];
// SHA-256 of one block of 64 bytes for each thread; the words are big-endian.
extern "C" __global__ void sha256(const unsigned *blocks, unsigned *digest, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const auto right = [](unsigned v, int by) { return __funnelshift_r(v, v, by); };
  unsigned w[64], h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  for (int t = 0; t < 16; ++t) w[t] = __byte_perm(blocks[i * 16 + t], 0, 0x0123);
  for (int t = 16; t < 64; ++t) {
    const unsigned a = w[t - 15], b = w[t - 2];
    const unsigned from_a = right(a, 7) ^ right(a, 18) ^ a >> 3;
    const unsigned from_b = right(b, 17) ^ right(b, 19) ^ b >> 10;
    w[t] = w[t - 16] + from_a + w[t - 7] + from_b;
  }
  unsigned s[8];
  for (int k = 0; k < 8; ++k) s[k] = h[k];
  for (int t = 0; t < 64; ++t) {
    const unsigned e = s[4], a = s[0];
    const unsigned choice = e & s[5] ^ ~e & s[6];
    const unsigned one = s[7] + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) + choice + sha_k[t] + w[t];
    const unsigned two = (right(a, 2) ^ right(a, 13) ^ right(a, 22)) + (a & s[1] ^ a & s[2] ^ s[1] & s[2]);
    for (int k = 7; k > 0; --k) s[k] = s[k - 1];
    s[4] += one;
    s[0] = one + two;
  }
  for (int k = 0; k < 8; ++k) digest[i * 8 + k] = __byte_perm(h[k] + s[k], 0, 0x0123);
}

__constant__ unsigned char sbox[256];
__device__ unsigned char twice(unsigned char v) { return v << 1 ^ (v & 0x80 ? 0x1b : 0); }
// One round of AES: a thread a byte of the state, 16 of them to a block of data; the box in shared memory.
extern "C" __global__ void aes_round(const unsigned char *state, const unsigned char *key,
                                     unsigned char *out) {
  __shared__ unsigned char box[256];
  for (int k = threadIdx.x; k < 256; k += blockDim.x) box[k] = sbox[k];
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int block = i / 16 * 16, row = i % 4, column = i % 16 / 4;
  const auto at = [&](int r) { return box[state[block + (column + r) % 4 * 4 + r]]; };
  const unsigned char a = at(row), b = at((row + 1) % 4), c = at((row + 2) % 4), d = at((row + 3) % 4);
  out[i] = twice(a) ^ twice(b) ^ b ^ c ^ d ^ key[i % 16];
}

// CRC-32, a table in shared memory that the threads make first.
extern "C" __global__ void crc32(const unsigned char *text, const int *begin, unsigned *crc, int n) {
  __shared__ unsigned table[256];
  for (int k = threadIdx.x; k < 256; k += blockDim.x) {
    unsigned v = k;
    for (int b = 0; b < 8; ++b) v = v & 1 ? v >> 1 ^ 0xedb88320u : v >> 1;
    table[k] = v;
  }
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned c = ~0u;
  for (int k = begin[i]; k < begin[i + 1]; ++k) c = table[(c ^ text[k]) & 255] ^ c >> 8;
  crc[i] = ~c;
}

// Where a pattern is: each thread tries one place.
extern "C" __global__ void match_naive(const char *text, int n, const char *pattern, int m,
                                       unsigned char *found) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + m > n) return;
  int k = 0;
  while (k < m && text[i + k] == pattern[k]) ++k;
  found[i] = k == m;
}

// Knuth, Morris and Pratt: each thread searches a piece of the text with the pattern's failure table.
extern "C" __global__ void match_kmp(const char *text, int n, const char *pattern, const int *fail, int m,
                                     unsigned char *found, int piece) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x, first = t * piece;
  int state = 0;
  for (int i = first; i < min(n, first + piece + m - 1); ++i) {
    while (state > 0 && (state == m || pattern[state] != text[i])) state = fail[state - 1];
    if (pattern[state] == text[i]) ++state;
    if (state == m) found[i - m + 1] = 1;
  }
}

// Levenshtein's distance of pairs of words: a thread a pair, one row in local memory.
extern "C" __global__ void edit_distance(const char *words, const int *begin, const int2 *pair, int *distance,
                                         int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const char *a = words + begin[pair[i].x], *b = words + begin[pair[i].y];
  const int la = begin[pair[i].x + 1] - begin[pair[i].x], lb = begin[pair[i].y + 1] - begin[pair[i].y];
  int row[33];
  for (int k = 0; k <= lb; ++k) row[k] = k;
  for (int j = 1; j <= la; ++j) {
    int diagonal = row[0];
    row[0] = j;
    for (int k = 1; k <= lb; ++k) {
      const int up = row[k];
      row[k] = min(min(row[k], row[k - 1]) + 1, diagonal + (a[j - 1] != b[k - 1]));
      diagonal = up;
    }
  }
  distance[i] = row[lb];
}
"""

MASK = 0xFFFFFFFF


def philox(counter: int, key: tuple[int, int]) -> list[int]:
    """Philox 4x32-10 (Salmon et al., SC 2011)."""
    c = [counter & MASK, counter >> 32 & MASK, 0, 0]
    k = list(key)
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [second >> 32 ^ c[1] ^ k[0], second & MASK, first >> 32 ^ c[3] ^ k[1], first & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


def texts(rng: np.random.Generator, count: int) -> tuple[list[bytes], np.ndarray, np.ndarray]:
    """Random texts of 0 to 40 bytes, concatenated, and where each begins."""
    each = [rng.bytes(int(n)) for n in rng.integers(0, 41, count)]
    begin = np.cumsum([0, *map(len, each)]).astype(np.int32)
    return each, np.frombuffer(b"".join(each), np.uint8), begin


def murmur3(text: bytes, seed: int) -> int:
    h = seed

    def mix(k: int) -> int:
        k = k * 0xCC9E2D51 & MASK
        return (k << 15 | k >> 17) * 0x1B873593 & MASK

    whole = len(text) // 4 * 4
    for i in range(0, whole, 4):
        h ^= mix(int.from_bytes(text[i : i + 4], "little"))
        h = ((h << 13 | h >> 19) * 5 + 0xE6546B64) & MASK
    h ^= mix(int.from_bytes(text[whole:], "little")) ^ len(text)
    h = (h ^ h >> 16) * 0x85EBCA6B & MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & MASK
    return h ^ h >> 16


def primes() -> Iterator[int]:
    n = 2
    while True:
        if all(n % d for d in range(2, n)):
            yield n
        n += 1


def field_product(a: int, b: int) -> int:
    """Multiplication in AES's field of 256 elements."""
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a = a << 1 ^ (0x11B if a & 0x80 else 0)
        b >>= 1
    return product


def substitution_box() -> list[int]:
    """Inverse in the field, then the affine map (FIPS 197, section 5.1.1)."""
    inverse = [next((b for b in range(256) if field_product(a, b) == 1), 0) for a in range(256)]
    rotate = [lambda v, by=by: (v << by | v >> 8 - by) & 255 for by in range(5)]
    return [0x63 ^ r[0](v) ^ r[1](v) ^ r[2](v) ^ r[3](v) ^ r[4](v) for v in inverse for r in [rotate]]


@pytest.mark.parametrize(("grid", "block"), [(1, 1), (2, 96)])
def test_xorshift(module: Module, rng: np.random.Generator, grid: int, block: int) -> None:
    state = rng.integers(1, 2**32, grid * block, dtype=np.uint64).astype(np.uint32)
    s, expected = state.copy(), []
    for _ in range(20):
        s ^= s << np.uint32(13)
        s ^= s >> np.uint32(17)
        s ^= s << np.uint32(5)
        expected.append(s.copy())
    out = np.zeros((20, grid * block), np.uint32)
    module.xorshift[grid, block](state, out, 20)
    assert (out == expected).all() and (state == s).all()


@pytest.mark.parametrize("first", [0, 2**32 - 3])
def test_philox(module: Module, first: int) -> None:
    key = (0xA4093822, 0x299F31D0)
    out = np.zeros((40, 4), np.uint32)
    packed = np.array([key], np.dtype("u4,u4"))[0]
    module.philox_stream[2, 32](out, np.uint64(first), packed, 40)
    assert out.tolist() == [philox(first + i, key) for i in range(40)]


def test_pi_by_darts(module: Module) -> None:
    key, each = (1, 2), 10
    hits = np.zeros(1, np.uint64)
    module.darts[2, 64](hits, each, np.array([key], np.dtype("u4,u4"))[0])
    expected = 0
    for thread in range(128):
        for k in range(each):
            x, y, *_ = philox(k | thread << 32, key)
            expected += ((x << 32) ** 2 >> 64) + ((y << 32) ** 2 >> 64) < 1 << 64
    assert hits[0] == expected
    assert abs(4 * expected / 1280 - np.pi) < 0.2


def test_hashes_of_texts(module: Module, rng: np.random.Generator) -> None:
    each, text, begin = texts(rng, 100)
    fnv, murmur, crc = np.zeros(100, np.uint64), np.zeros(100, np.uint32), np.zeros(100, np.uint32)
    module.fnv1a[4, 32](text, begin, fnv, 100)
    module.murmur3[1, 128](text, begin, murmur, 0x9747B28C, 100)
    module.crc32[2, 64](text, begin, crc, 100)
    for i, one in enumerate(each):
        h = 0xCBF29CE484222325
        for byte in one:
            h = (h ^ byte) * 0x100000001B3 % 2**64
        assert fnv[i] == h
        assert murmur[i] == murmur3(one, 0x9747B28C)
        assert crc[i] == zlib.crc32(one)


def test_sha256(module: Module, rng: np.random.Generator) -> None:
    some = [p for p, _ in zip(primes(), range(64), strict=False)]
    # The fractional parts of the primes' cube roots, by integer search.
    constants = []
    for p in some:
        root = round((p << 96) ** (1 / 3))
        while root**3 > p << 96:
            root -= 1
        while (root + 1) ** 3 <= p << 96:
            root += 1
        constants.append(root & MASK)
    module.variable("sha_k", np.uint32).set(constants)
    messages = [rng.bytes(int(n)) for n in rng.integers(0, 56, 50)]
    padded = b"".join(m + b"\x80" + bytes(55 - len(m)) + (8 * len(m)).to_bytes(8, "big") for m in messages)
    digest = np.zeros((50, 32), np.uint8)
    module.sha256[2, 32](np.frombuffer(padded, np.uint32), digest, 50)
    assert [d.tobytes() for d in digest] == [hashlib.sha256(m).digest() for m in messages]


def test_round_of_aes(module: Module, rng: np.random.Generator) -> None:
    box = substitution_box()
    module.variable("sbox").set(box)
    state, key = rng.integers(0, 256, (20, 16)).astype(np.uint8), rng.integers(0, 256, 16).astype(np.uint8)
    out = np.zeros_like(state)
    module.aes_round[5, 64](state, key, out)
    matrix = [[2, 3, 1, 1], [1, 2, 3, 1], [1, 1, 2, 3], [3, 1, 1, 2]]
    for before, after in zip(state.tolist(), out.tolist(), strict=True):
        shifted = [[box[before[(c + r) % 4 * 4 + r]] for r in range(4)] for c in range(4)]
        for c in range(4):
            for r in range(4):
                mixed = int(key[4 * c + r])
                for k in range(4):
                    mixed ^= field_product(shifted[c][k], matrix[r][k])
                assert after[4 * c + r] == mixed


@pytest.mark.parametrize("pattern", ["a", "ab", "aabaa", "abababab"])
def test_matching_strings(module: Module, rng: np.random.Generator, pattern: str) -> None:
    text = "".join(rng.choice(["a", "b"], 700, p=[0.6, 0.4]))
    expected = [text.startswith(pattern, i) for i in range(700)]
    fail, k = [0], 0
    for c in pattern[1:]:
        while k and pattern[k] != c:
            k = fail[k - 1]
        k += pattern[k] == c
        fail.append(k)
    raw, wanted = np.frombuffer(text.encode(), np.uint8), np.frombuffer(pattern.encode(), np.uint8)
    found = np.zeros((2, 700), np.uint8)
    module.match_naive[6, 128](raw, 700, wanted, len(pattern), found[0])
    module.match_kmp[2, 32](raw, 700, wanted, np.array(fail, np.int32), len(pattern), found[1], 13)
    assert (found == expected).all()


def test_edit_distance(module: Module, rng: np.random.Generator) -> None:
    words = [
        "",
        "kitten",
        "sitting",
        *("".join(rng.choice(list("abc"), int(rng.integers(1, 20)))) for _ in range(9)),
    ]
    begin = np.cumsum([0, *map(len, words)]).astype(np.int32)
    pairs = np.array([(a, b) for a in range(len(words)) for b in range(len(words))], np.int32)
    distance = np.zeros(len(pairs), np.int32)
    module.edit_distance[-(-len(pairs) // 64), 64](
        np.frombuffer("".join(words).encode(), np.uint8), begin, pairs, distance, len(pairs)
    )
    for (x, y), d in zip(pairs, distance, strict=True):
        a, b = words[x], words[y]
        row = list(range(len(b) + 1))
        for i, c in enumerate(a):
            previous, row = row, [i + 1]
            for j, other in enumerate(b):
                row.append(min(previous[j + 1] + 1, row[j] + 1, previous[j] + (c != other)))
        assert d == row[-1]
    assert distance[len(words) + 2] == 3  # kitten, sitting
