"""AES-256 encryption in ECB mode (FIPS 197): a thread for each block of 16 bytes, tables in shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .workload import Workload, with_midpoints

if TYPE_CHECKING:
    from simt.gpu import GPU

ROUNDS = 14
SOURCE = """
// A table gives what one byte of the state adds to a column: SubBytes and MixColumns in one. The other three
// rows are its rotations. Words are little-endian: row 0 of a column is its lowest byte.
__device__ unsigned rotated(unsigned word, int rows) { return __funnelshift_l(word, word, 8 * rows); }
extern "C" __global__ void aes(const uint4* text, uint4* cipher, const unsigned* keys, const unsigned* table,
                               int blocks) {
  __shared__ unsigned mix[256];
  mix[threadIdx.x] = table[threadIdx.x];
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= blocks) return;
  uint4 state = text[i];
  unsigned a = state.x ^ keys[0], b = state.y ^ keys[1], c = state.z ^ keys[2], d = state.w ^ keys[3];
#define COLUMN(p, q, r, s) \\
  (mix[(p) & 255] ^ rotated(mix[(q) >> 8 & 255], 1) ^ rotated(mix[(r) >> 16 & 255], 2) ^ \\
   rotated(mix[(s) >> 24], 3))
#pragma unroll 1
  for (int round = 1; round < 14; round++) {
    keys += 4;
    unsigned e = COLUMN(a, b, c, d) ^ keys[0], f = COLUMN(b, c, d, a) ^ keys[1];
    unsigned g = COLUMN(c, d, a, b) ^ keys[2], h = COLUMN(d, a, b, c) ^ keys[3];
    a = e, b = f, c = g, d = h;
  }
  keys += 4;
  // The last round does not mix; the table's second byte is the substituted one.
#define LAST(p, q, r, s) \\
  ((mix[(p) & 255] >> 8 & 255) | (mix[(q) >> 8 & 255] & 0xff00) | (mix[(r) >> 16 & 255] & 0xff00) << 8 | \\
   (mix[(s) >> 24] & 0xff00) << 16)
  cipher[i] = make_uint4(LAST(a, b, c, d) ^ keys[0], LAST(b, c, d, a) ^ keys[1], LAST(c, d, a, b) ^ keys[2],
                         LAST(d, a, b, c) ^ keys[3]);
}
"""


def _times(a: int, b: int) -> int:
    """The product in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1 (FIPS 197, section 4.2)."""
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a = (a << 1) ^ (0x11B if a & 0x80 else 0)
        b >>= 1
    return product


def _substitutions() -> npt.NDArray[np.uint8]:
    """The S-box (FIPS 197, section 5.1.1): the inverse, then an affine map."""
    box = np.zeros(256, np.uint8)
    power, inverse = 1, 1
    for _ in range(255):  # 3 generates the field, 0xf6 is its inverse
        box[power] = inverse ^ 0x63
        for turn in range(1, 5):
            box[power] ^= (inverse << turn | inverse >> (8 - turn)) & 255
        power, inverse = _times(power, 3), _times(inverse, 0xF6)
    box[0] = 0x63
    return box


S_BOX = _substitutions()
_DOUBLE = np.array([_times(x, 2) for x in range(256)], np.uint8)


def expand_key(key: bytes) -> npt.NDArray[np.uint8]:
    """The round keys of a key of 32 bytes, (15, 16) bytes (FIPS 197, section 5.2)."""
    words = [np.frombuffer(key, np.uint8)[4 * k : 4 * k + 4].copy() for k in range(8)]
    constant = 1
    for k in range(8, 4 * (ROUNDS + 1)):
        word = words[-1]
        if k % 8 == 0:
            word = S_BOX[np.roll(word, -1)]
            word[0] ^= constant
            constant = _times(constant, 2)
        elif k % 8 == 4:
            word = S_BOX[word]
        words.append(words[k - 8] ^ word)
    return np.concatenate(words).reshape(ROUNDS + 1, 16)


def encrypt(text: npt.NDArray[np.uint8], key: bytes) -> npt.NDArray[np.uint8]:
    """Each row of 16 bytes encrypted, step by step as FIPS 197 (section 5.1) has it."""
    keys = expand_key(key)
    state: npt.NDArray[np.uint8] = text ^ keys[0]
    for number in range(1, ROUNDS + 1):
        state = S_BOX[state].reshape(-1, 4, 4)  # block, column, row
        state = np.stack([np.roll(state[:, :, row], -row, 1) for row in range(4)], 2)
        if number < ROUNDS:
            total = np.bitwise_xor.reduce(state, 2, keepdims=True)
            state = state ^ total ^ _DOUBLE[state ^ np.roll(state, -1, 2)]
        state = state.reshape(-1, 16) ^ keys[number]
    return state


def encrypt_on(gpu: GPU, text: npt.NDArray[np.uint8], key: bytes) -> npt.NDArray[np.uint8]:
    """Each row of 16 bytes encrypted on a GPU."""
    box = S_BOX.astype(np.uint32)
    double = _DOUBLE[S_BOX].astype(np.uint32)
    table = double | box << 8 | box << 16 | (double ^ box) << 24
    blocks = len(text)
    keys = gpu.array(expand_key(key).view(np.uint32))
    source, cipher = gpu.array(text), gpu.empty(text.shape, np.uint8)
    gpu.compile(SOURCE).aes[-(-blocks // 256), 256](source, cipher, keys, gpu.array(table), blocks)
    return np.asarray(cipher.numpy(), np.uint8)


def _inputs(size: int) -> tuple[npt.NDArray[np.uint8], bytes]:
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (size // 16, 16), np.uint8), rng.bytes(32)


AES = Workload(
    name="aes",
    summary="AES-256 encryption",
    unit="bytes",
    sizes=with_midpoints(*(1 << k for k in range(19, 24))),
    small=16 * 300,
    multiple=16,
    on_gpu=lambda gpu, size: {"cipher": encrypt_on(gpu, *_inputs(size))},
    on_host=lambda size: {"cipher": encrypt(*_inputs(size))},
    tolerance=0,
)
