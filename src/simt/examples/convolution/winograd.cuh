// Winograd's minimal filtering (Lavin and Gray 2016): y = A'[(G g) * (B' d)], here derived from polynomials:
// a tile of T data, M outputs and R taps, T = M + R - 1, are evaluated at T points, the last at infinity. The
// others are 0, 1, -1, and for T = 6 also 2, -2. All scaling is in G, so A' and B' have small integers.
__device__ constexpr float power(int base, int exponent) {
  float value = 1;
  for (int i = 0; i < exponent; i++) value *= base;
  return value;
}

// B' d, in place.
__device__ inline void data(float (&d)[4]) {
  float a = d[2] - d[0], b = d[1] + d[2], c = d[2] - d[1], e = d[3] - d[1];
  d[0] = a, d[1] = b, d[2] = c, d[3] = e;
}
__device__ inline void data(float (&d)[6]) {
  float even = d[4] - 4 * d[2], odd = d[3] - 4 * d[1], even2 = d[4] - d[2], odd2 = 2 * (d[3] - d[1]);
  float first = 4 * d[0] - 5 * d[2] + d[4], last = 4 * d[1] - 5 * d[3] + d[5];
  d[0] = first, d[1] = even + odd, d[2] = even - odd, d[3] = even2 + odd2, d[4] = even2 - odd2, d[5] = last;
}
// Sums of the even and of the odd terms of a polynomial at a point.
template <int POINT, int R>
__device__ inline void halves(const float (&g)[R], float& even, float& odd) {
  even = g[0], odd = 0;
#pragma unroll
  for (int i = 1; i < R; i++) (i % 2 ? odd : even) += power(POINT, i) * g[i];
}
// G g.
template <int R>
__device__ inline void taps(const float (&g)[R], float (&u)[4]) {
  float even, odd;
  halves<1>(g, even, odd);
  u[0] = -g[0], u[1] = (even + odd) / 2, u[2] = (even - odd) / 2, u[3] = g[R - 1];
}
template <int R>
__device__ inline void taps(const float (&g)[R], float (&u)[6]) {
  float even, odd;
  halves<1>(g, even, odd);
  u[0] = g[0] / 4, u[1] = (even + odd) * (-1 / 6.0f), u[2] = (even - odd) * (-1 / 6.0f), u[5] = g[R - 1];
  halves<2>(g, even, odd);
  u[3] = (even + odd) * (1 / 24.0f), u[4] = (even - odd) * (1 / 24.0f);
}
// A' m.
template <int T, int M>
__device__ inline void outputs(const float (&m)[T], float (&y)[M]) {
#pragma unroll
  for (int i = 0; i < M; i++) {
    y[i] = i % 2 ? m[1] - m[2] : m[1] + m[2];
    if (T == 6) y[i] += power(2, i) * (i % 2 ? m[T - 3] - m[T - 2] : m[T - 3] + m[T - 2]);
    if (i == 0) y[i] += m[0];
    if (i == M - 1) y[i] += m[T - 1];
  }
}

// The same of both dimensions of a tile.
template <int T>
__device__ inline void data_2d(float (&d)[T][T]) {
#pragma unroll
  for (int j = 0; j < T; j++) {
    float column[T];
#pragma unroll
    for (int i = 0; i < T; i++) column[i] = d[i][j];
    data(column);
#pragma unroll
    for (int i = 0; i < T; i++) d[i][j] = column[i];
  }
#pragma unroll
  for (int i = 0; i < T; i++) data(d[i]);
}
template <int R, int T>
__device__ inline void taps_2d(const float (&g)[R][R], float (&u)[T][T]) {
  float half[T][R];
#pragma unroll
  for (int j = 0; j < R; j++) {
    float column[R], points[T];
#pragma unroll
    for (int i = 0; i < R; i++) column[i] = g[i][j];
    taps(column, points);
#pragma unroll
    for (int i = 0; i < T; i++) half[i][j] = points[i];
  }
#pragma unroll
  for (int i = 0; i < T; i++) taps(half[i], u[i]);
}
template <int T, int M>
__device__ inline void outputs_2d(const float (&m)[T][T], float (&y)[M][M]) {
  float half[M][T];
#pragma unroll
  for (int j = 0; j < T; j++) {
    float column[T], values[M];
#pragma unroll
    for (int i = 0; i < T; i++) column[i] = m[i][j];
    outputs(column, values);
#pragma unroll
    for (int i = 0; i < M; i++) half[i][j] = values[i];
  }
#pragma unroll
  for (int i = 0; i < M; i++) outputs(half[i], y[i]);
}

// A window of an image, with zeros outside of it.
template <int T>
__device__ inline void window(const float* image, int top, int left, int height, int width,
                              float (&d)[T][T]) {
#pragma unroll
  for (int i = 0; i < T; i++)
#pragma unroll
    for (int j = 0; j < T; j++) d[i][j] = element(image, top + i, left + j, height, width);
}
// A filter, turned by 180 degrees if asked for.
template <int R>
__device__ inline void filter(const float* w, bool turned, float (&g)[R][R]) {
#pragma unroll
  for (int i = 0; i < R; i++)
#pragma unroll
    for (int j = 0; j < R; j++) g[i][j] = w[turned ? (R - 1 - i) * R + R - 1 - j : i * R + j];
}
