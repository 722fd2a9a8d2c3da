"""Transposes a matrix of 512 x 512."""

WIDTH = 512


def main(gpu, module):
    x, y = gpu.zeros(WIDTH * WIDTH), gpu.zeros(WIDTH * WIDTH)
    module.transpose[WIDTH * WIDTH // 256, 256](x, y, WIDTH)
