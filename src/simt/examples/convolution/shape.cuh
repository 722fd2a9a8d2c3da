// The problem, as simt.examples.convolution.problem.Convolution.shape packs it: x is (n, c, h, w), filters
// are (k, c, r, s), y is (n, k, p, q).
struct Shape {
  int n, c, h, w, k, r, s, p, q, pad_h, pad_w, stride;
};
// An element of an image; 0 outside.
__device__ inline float element(const float* image, int row, int column, int height, int width) {
  return (unsigned)row < (unsigned)height && (unsigned)column < (unsigned)width ? image[row * width + column]
                                                                                : 0;
}
