"""A matrix of 20,480 x 32 times a vector."""

HEIGHT, WIDTH = 20_480, 32


def main(gpu, module):
    a, x, y = gpu.zeros(HEIGHT * WIDTH), gpu.zeros(WIDTH), gpu.zeros(HEIGHT)
    module.rows[HEIGHT // 128, 128](a, x, y, WIDTH)
