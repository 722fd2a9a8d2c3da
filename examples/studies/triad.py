"""c = a + 3 b over half a million numbers."""

N = 1 << 19


def main(gpu, module):
    a, b, c = (gpu.zeros(N) for _ in range(3))
    module.triad[N // 1024, 256](a, b, c, N // 4)
